"""Frequent given names and surnames in Portuguese, English and Spanish, and how much a column looks like them.

Words are compared in lower case without accents. Names that are more often something else (months, colours,
towns, plants) are left out of the given names: "april", "rosa", "virginia".
"""

from __future__ import annotations

import polars as pl

from velado.data.identifiers.lexicon import words

GIVEN = words(
    """
    abel abigail abner adalberto adam adao adela adelaide adelia ademar ademir adilson adolfo adria adriana adriano
    adrian adrienne afonso agatha agnes agustin aida ailton alain alan alana alba albert alberto alejandra alejandro
    alessandra alessandro alex alexandra alexandre alexis alfonso alfred alfredo alice alicia aline alison allan
    allison almir aloisio alonso altair alvaro alyssa amanda amaro amber amelia americo amparo amy ana anabel andre
    andrea andreia andres andressa andrew angel angela angelica angelina angelo anibal anita ann anna anne annie
    antonella anthony antonia antonio aparecida araceli ariana ariane ariel arlete armando arnaldo arthur artur
    ashley augusta augusto aurelio aurora ayla barbara beatriz beatrice ben benedita benedito benicio benjamin
    bento bernadete bernard bernarda bernardo beth betty bia bianca billy bob brad brandon brenda breno brian
    brittany bruna bruno bryan caio caitlin camila camilo carina carla carlos carmen carol carolina caroline
    carlota catalina catarina catherine caua cecilia celia celina celio celso cesar charles charlie chloe
    christian christina christine christopher cibele cicera cicero cintia ciro clara clarice claudia claudio
    cleber cleide cleiton clelia clovis connor conceicao consuelo cora corey cristian cristiana cristiane
    cristiano cristina crystal cynthia daiane dalila dalva damian damiao dan daniel daniela daniele danielle
    danilo dario darlene dave davi david dayane debbie debora deborah deise delfina denis denise dennis derek
    desiree diana diane diego dilma dina diogo dirce dolores domingos dominic donald donna doris dorothy douglas
    doug dulce dustin dylan earl eddie edgar edilson edite edith edmundo edna edson eduarda eduardo edward
    elaine eleanor elena eleonora eli eliana eliane elias elisa elisabete eliseu elizabeth ella ellen eloa
    eloisa elsa elton elza emanuel emanuela emerson emilia emiliano emilio emily emma encarnacion enrique enzo
    eric erica erick erik erika ernesto esmeralda esteban estefania estela ester esther ethan eugenia eugenio
    eunice eva evandro evelyn everton fabiana fabiano fabio fabiola fabricio fatima faustino federico felicia
    felipe felix fernanda fernando fidel filipa filipe flavia flavio flora francesca francine francisca
    francisco frank franklin fred frederico gabriel gabriela gabrielle gael gary genesis genoveva george geovana
    geraldo gerardo gerson gil gilberto gilda gilmar gilson giovana giovanna giovanni gisele gladys glauber
    glenn gloria gonzalo goncalo graca graciela gregorio gregory guilherme guillermo gustavo hannah harold
    harry heather hector heitor helder helen helena helio heloisa henrique henry herbert hermes hilda horacio
    hugo humberto iago ian iara ignacio igor ines ingrid ione iracema irene isaac isabel isabela isabella
    isadora isaias isis ismael israel itamar ivan ivana ivete ivone jack jacob jacqueline jader jaime jair
    jairo james jamie jan jane janaina janet janice jaqueline javier jean jeff jefferson jeffrey jennifer
    jenny jeremy jerry jesse jessica jesus jill jim jimena jimmy joan joana joanna joao joaquim joaquin jocelyn
    joe joel joey john johnny jon jonas jonatas jonathan jorge jose josefa josefina joseph josh joshua josiane
    josue joyce juan juana juanita judite judith judy julia juliana juliane juliano julie julio junior
    jurema jussara justin kaio karen karina karine karla karol kate katherine kathleen kathryn katia kayla keila
    keith kelly kelvin ken kenneth kevin kim kimberly kleber kyle laercio lais lana lara larissa larry laura
    lauren lauro lavinia lazaro leandra leandro leila lena leo leonardo leonel leonor leonora leopoldo leslie
    leticia levi lia lidia ligia lilian liliana lilly lina linda lindsay lisa lisandra livia liz lorena
    lorenzo loreto louis louise lourdes lourenco lucas lucia luciana luciano lucila lucimar lucy luis luisa
    luiz luiza luana luan luciene lurdes luzia madalena magali magda maiara maicon maira maite manoel manuel
    manuela mara marcela marcelino marcelo marcia marcio marco marcos marcus margaret margarida margarita maria
    mariah mariana mariano maricela marie marilda marilene marilia marina mario marisa marisol maristela
    marlene marli marlon marta martha martin martina martinho mary mateo mateus matheus mathew matias matilde
    matt matthew maura mauricio mauro max maximiliano maya megan melanie melinda melissa mercedes mia micaela
    michael michel michele michelle miguel mikaela milena milton mireia mirela miriam moacir moises
    molly monica monique montserrat murilo nadia nair nancy naomi natalia natalie natan natasha nathan nathalia
    neide nelson nestor neusa newton nicholas nick nicolas nicole nicolle nilda nilson nilton nina noah noe
    noelia noemi norberto norma nuria octavio odete ofelia olga oliver olivia omar orlando osama oscar oswaldo
    otavio otto pablo paloma pamela paola pascual patricia patrick paul paula pauline paulina paulo pedro
    peggy penelope peter phil philip phillip pietra pietro pilar poliana priscila quiteria rachel rafael rafaela
    raimunda raimundo ralph ramiro ramon randy raquel raul ray raymond rebeca rebecca regina reginaldo reinaldo
    renan renata renato rene rhuan ricardo richard rick rita robert roberta roberto robin robson rocio rodolfo
    rodrigo roger rogerio rolando romeu romulo ronaldo ronald rosalia rosana rosane rosangela rosario roseli
    rosemary rosilene rosimeire rosita roxana ruben rubens rui russell ruth ryan sabrina salvador sam samanta
    samantha samara samuel sandra sandro sandy sara sarah saul saulo scott sean sebastian sebastiana sebastiao
    selma severina severino sergio sharon sheila shirley sidnei silvana silvia silvio simao simon simone sofia
    solange sonia sophia sophie soraia stefany stella stephanie stephen steve steven stuart suelen sueli susan
    susana suzana sylvia taina tais tamara tania tarcisio tatiana tatiane telma teodoro teresa teresinha terry
    thais thalita theo theodore theresa thiago thomas tiago tiffany tim timothy tina tito todd tom tomas tony
    tracy trevor tyler ubiratan ulisses urbano valdir valdemar valentin valentina valeria valter vanda vanderlei
    vanessa vania vera veronica vicente vicki victor vilma vincent vinicius vitor vitoria viviana viviane wagner
    waldir walter wanda wanderley wellington wendy wesley wilbur will william willian wilma wilson xavier
    ximena yago yan yara yasmin yolanda yuri zachary zelia zilda zoe zuleica kiara
    """
)
SURNAMES = words(
    """
    abreu adams aguiar aguilar aguirre albuquerque alcantara alencar allen almeida alonso alvarenga alvarez alves
    amaral amorim andersen anderson andrade antunes aparecido aragao araujo arruda assis assuncao avila azevedo
    bailey baker baptista barbosa barnes barreto barros barroso bastos batista bell bennett benitez bernardes
    bezerra blanco borges botelho braga brandao brito brooks brown bueno butler cabral cabrera calderon caldeira
    camacho camargo campbell campos cardoso carneiro carrasco carter carvalho castillo castro cavalcante
    cavalcanti chagas chaves clark coelho coimbra coleman collins cook cooper cordeiro correa correia cortes
    cortez costa couto cox cruz cunha damasceno davies davis delgado dias diaz diniz domingues dominguez duarte
    duran dutra edwards esteves evans facundo farias faria fernandes fernandez ferrari ferraz ferreira ferrer
    figueiredo figueroa flores fonseca fontes foster franca franco freitas fuentes furtado galvao gallego gallo
    garcia garrido gil gimenez godoy goes gomes gomez goncalves gonzaga gonzales gonzalez gouveia gray green
    griffin guedes guerra guerrero guimaraes gutierrez guzman hall harris henderson henriques hernandez herrera
    hill howard hughes ibanez iglesias jackson jardim jenkins jesus jimenez johnson jones jordan king lacerda
    lago leal leao lee leite lemos leon lewis lima linhares lins lobo long lopes lopez loureiro lozano luna luz
    macedo machado maciel magalhaes maia malta marinho marin marques marquez martin martinez martins matos mattos
    medeiros medina meireles mello melo mendes mendez mendonca menezes mesquita miller miranda mitchell molina
    monteiro montes moore mora moraes morais morales moreira moreno morgan morris mota motta moura murphy
    nascimento navarro negreiros nelson neto neves nguyen nobre nogueira norton nunes nunez oliveira ortega ortiz
    osorio pacheco padilha paiva parker parra passos patel paz pedrosa peixoto pena penha pereira perez perry
    pessoa peterson phillips pimenta pimentel pinheiro pinto pires ponce porto portela powell prado prieto price
    queiroz quintana ramirez ramos rangel reed reis rezende ribeiro richardson rios rivera roberts robinson rocha
    rodrigues rodriguez rojas roman romero rosario ross rossi ruiz russell sa saavedra salas salazar sales salgado
    salinas sampaio sanchez sanders santana santiago santos sanz saraiva schmidt schneider scott seixas serra
    serrano severo silva silveira simoes simmons siqueira smith soares soto sousa souza suarez sullivan tavares
    taylor teixeira teles telles tenorio thompson toledo torres trindade turner vale valente valle vargas vasconcelos
    vasquez vaz vazquez vega veiga velasco vera viana vidal vieira vilela villar walker wang ward watson white
    williams wilson wood wright xavier young zanetti zapata fogaca becker weber muller meyer cohen murray kelly
    """
)
PARTICLES = r"(?:d[aeo]s?|e|von|van|der|del|de la|la|di|du|y)"
_TITLES = r"^(?:dr|dra|sr|sra|srta|mr|mrs|ms|prof|profa|don|dona|enf|sor)\b\.?\s+"


def plain_texts(texts: pl.Series) -> pl.Series:
    """Texts in lower case without accents, titles, final digits and doubled blanks; `SILVA, Maria` as `maria silva`."""
    plain = texts.str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase()
    plain = plain.str.replace_all(r"[._\s]+", " ").str.strip_chars()
    plain = plain.str.replace(_TITLES, "").str.replace(r"\d+$", "")
    return plain.str.replace(r"^([^,]+),\s*([^,]+)$", "$2 $1")


def name_shares(texts: pl.Series) -> tuple[float, float, float, float]:
    """Shares of texts that are full names by both lists, by one of them, a given name alone, a surname alone.

    A full name has two to seven words of letters. The texts should be distinct, so that one that repeats counts once.
    """
    if not texts.len():
        return 0.0, 0.0, 0.0, 0.0
    plain = plain_texts(texts)
    wordy = plain.str.contains(r"^[a-z'’-]+(?: [a-z'’-]+){0,6}$")
    several = wordy & plain.str.contains(" ", literal=True)
    first = plain.str.extract(r"^([a-z'’]+)").is_in(list(GIVEN)).fill_null(False)
    ends = plain.str.extract(r"([a-z'’]+)$")
    last = ends.is_in(list(SURNAMES)).fill_null(False)
    begun = plain.str.extract(r"^([a-z'’]+)").is_in(list(SURNAMES)).fill_null(False)
    initial = plain.str.contains(r" [a-z]$") | plain.str.contains(r"^[a-z] ")
    both = several & first & (last | ends.is_in(list(GIVEN)).fill_null(False))
    one = several & (first | last | (begun & initial))
    single = wordy & ~several
    counts = (both, one, single & first, single & begun)
    return (
        int(counts[0].sum()) / texts.len(),
        int(counts[1].sum()) / texts.len(),
        int(counts[2].sum()) / texts.len(),
        int(counts[3].sum()) / texts.len(),
    )
