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
    aaliyah aaron adele adewale agustina ahmed aisha aitana aitor aiden alastair albina aleida alfie ali alisha alma alondra
    alistair amara amir amina anais ander andrei angus anika anjali anton aoife archie arjun arlo arturo asha asier astrid
    audrey augustina avery ayesha barry bartolome begona belen bethany bettina blake bonnie brad bradley brayan
    brendan brett bridget bronwyn bruce bryce caleb callum cameron candela candice carlton carmela carmelo carrie casey
    cassandra cedric celeste chad chantal charlene charlotte chelsea cheryl chidi chinedu chris christophe ciara cindy
    claire clarence claudine clemente clifford clint clive cody colin colleen colm concepcion conchita conor constance
    courtney craig curtis cyril dakota dale damien damon dana daphne darnell darren darryl dawn dean declan deepak
    deirdre demetrius denzel deon desmond destiny devon diarmuid dolly dominique dora doreen dorian duncan dwayne dwight
    ebony eduard edwin efrain eileen eimear ekaterina elisabeth elliot elliott elmer eloise elsie elvira emeka emmanuel enid
    eoin ernest estrella ettore eusebio evan ewan ezequiel facundo faith fatou faye felicity fergus fernanda fiona florencia
    florence francis freddie freya gareth gavin gemma geoffrey georgia georgina gerald geraldine gertrude giles gillian ginny
    giselle glen gordon grace graham grant greta gretchen guadalupe gwen gwendolyn haley hamish hans harriet harriett
    harrison harvey hassan hayley hazel heidi herman hilary holly hortensia howard hunter hussein ibrahim ida iker iain imani
    imogen imelda indira ingo inigo irma isidro isla itziar ivy jacinta jackie jada jade jaden jake jamal jasmin jasmine
    jasper jayden jayne jean jemima jenna jeremiah jermaine jerome joanne jodie johan jolene jordi joanna josephine josie
    juliet julian julien kamal karim karl kasey katarina katelyn katie kathy kavita kayleigh keisha kelvin kendra
    kerry khalid kiera kieran kirsten kirsty kofi krista kristen kristin kristina krystal kwame kylie lakisha lamar
    lance latasha latoya laurence laurie leah leanne lee leona leroy lewis liam lila lillian lindsey lionel lloyd logan
    lois lola lonnie loretta lorna lorraine louisa lucas luca lucinda luke lydia lynn lynne mabel mackenzie maddison
    madeleine madison maeve magnus malcolm malik mandy manish marcel marcia margot marian marianne maribel marilyn marjorie
    marsha marshall marvin matteo maureen maurice maxine meera melody meredith mervyn mikhail mildred millie minerva
    miranda mitchell mohamed mohammed morag moses muhammad muriel myra myriam nadine naomi napoleon narciso natasha neha neil
    nelly neville ngozi niamh nigel nikita nikki nikolai noel nora norah noreen norman oisin olivier olumide omar
    oriana oriol orla osvaldo otis owen paddy paige parker patience patsy patti pearl perla perry petra phoebe phyllis
    poppy prakash precious preston primitivo priya quentin quincy rafferty rahul raj rajesh ramona randall rashid rashad ravi
    reece reggie reginald remedios rhiannon rhoda rhona rhonda rhys riley roberta rod roderick rodney roland ronan ronnie
    rory rosalind rosemarie rosie rowan roxanne roy ruby rufus rupert saoirse sally sanjay sasha saskia scarlett sebastien
    selena serena seth shane shanice shannon shaun shauna shawn sheldon shelley sherry siddharth sidney sienna silas
    sinead siobhan socorro soledad spencer stacey stanley stefan stewart stuart sunita suresh susanna suzanne svetlana
    sybil tabitha tamika tanya tara tatyana ted terence terrance tess thelma tobias toby tomasz tracey travis trent tricia
    trisha trudy tyrone una ursula valentino valerie vaughn velma verity vernon vijay viola violet vivian vivienne vladimir
    wade wallace walt warren wayne wilfred willa winifred winston xander ximena yesenia yvette yvonne zack zaida zainab
    zara zeke deusdete edineusa genival ivanilde jucelia valdirene cleonice raimunda neusa adalberto iracema welington
    zoila zulema encarna inmaculada macarena manolo paco pepe ramiro rosaura sagrario trinidad vanesa yago zenaida
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
    abbott abernathy acosta adamson adeyemi aguado ahmed akhtar alba alcaraz aldridge alexander ali allison alvarado amador
    amos andrews andujar aparicio aranda archer arellano arias armstrong arnold arrieta arroyo arthur ashley ashton atkins
    atkinson austin avalos ayala ayers ball ballard banks barker barber barlow barnett barr barrera barrett barrios barron barry
    bartlett barton bates beck beltran benavides benjamin benson bentley berg bermudez bernal berry best bingham bird
    bishop black blackburn blackwell blackwood blair blake bond booth bowen bowers bowman boyd boyle bradford bradley
    bradshaw brady bravo brennan brewer briggs bright bruce bryant buchanan buckley bullock burgess burke burnett burns
    burton bush bustamante byrne caceres cain callahan cameron campos cano cannon cantu carey carlson carmona carpenter
    carr carrillo carroll carson casey castaneda castellanos cervantes chambers chan chandler chang chapman chavez chen
    cherry choi chowdhury christensen chung cisneros clarke clayton clements cobb cochran cohen cole collier colon
    conner connolly connor contreras conway cooke copeland cordero cordova cornejo correa costello cowan craig crawford cross
    cuevas cummings cunningham curry curtis dalton daniel daniels daugherty davenport davidson dawson deleon delarosa dennis
    desai dixon doherty dominguez donaldson donovan dorsey dougherty douglas downing downs doyle drake dudley duffy duncan
    dunlap dunn dyer eaton echeverria elliott ellis emerson erickson escobar espinosa espinoza esparza espinal estrada farley
    farmer farrell featherstone ferguson ferrera fields finch finley fischer fisher fitzgerald fitzpatrick fleming fletcher
    flynn foley forbes ford fowler fox francis franklin fraser frazier freeman french frost fry fuller gaines gallagher
    gallegos galindo galvan gamboa garner garrett garrison garza george gibbs gibson gilbert giles gill gillespie giraldo
    glass glenn glover godfrey goodman goodwin gordon gould graham grant graves greene greer gregory griffith grimes gross
    guerra guevara gupta guthrie haas hale haley hamilton hammond hampton hancock hanna hansen hanson hardin harding hardy
    hargreaves harmon harper harrell harrington harrison hart hartman harvey hawkins hayes haynes heath hendricks henry hensley
    henson herman herring hess hester hewitt hickman hicks higgins hinojosa hines hobbs hodge hodges hoffman hogan holden
    holland holloway holmes holt hood hooper hoover hopkins hopper horn horton houston howe howell huaman huang hubbard
    hudson huerta huff humphrey hunt hunter hurley hurst hussain hutchinson ibarra ingram irwin islam iyer jacobs jacobson
    james jaramillo jarvis jefferson jennings jensen johnston johns joseph joyce juarez kane kaur keller kemp kennedy kent
    kerr khan kim kirby kirk klein knight knox kowalski kramer kumar lamb lambert lancaster landry lane lang lara larkin larson
    lawrence lawson leach leblanc lester levy li lin lindsey little liu livingston lloyd logan love lowe lowery lucas lugo
    lynch lynn lyons macdonald macias mack madden maddox mahoney maldonado malone mamani mann manning marks marroquin marsh
    marshall mason massey mathews matthews maxwell mayer mayo maynard mcallister mcbride mccall mccarthy mccormick mccoy
    mcdaniel mcdonald mcdowell mcgee mcgrath mcguire mcintosh mcintyre mckay mckee mckenzie mckinney mclaughlin mclean
    mcmahon mcmillan mcneil mcpherson meadows mejia melendez melton mercado mercer merritt meyers meza michael middleton
    miles millar mills moffett mohamed mohammed molloy monroe montgomery montoya moody moon mooney moran morrison morrow
    morse morton moses moss moyer mueller mullen mullins munoz murillo myers nash naranjo neal newman newton nichols nicholson
    nielsen nixon nolan noble norman norris obrien o'brien oconnor o'connor odonnell o'donnell o'neill oneill o'neal o'sullivan
    o'reilly okafor okonkwo olson oliver olsen ochoa olivares ordonez orozco orr osborne otero owen owens pace padilla page
    palacios palmer pardo park parks parrish parsons patterson patton paul payne pearson peck pemberton pennington perkins
    peters petersen petty phelps pierce pineda pittman pitts pollard poole pope porter potter potts pratt preston proctor
    pruitt pugh quezada quinn quintero quispe quintela raja ramsbottom ramsey randall randolph rao rasmussen ray raymond
    reese reeves reid reilly renteria reyes reyna reynolds rhodes rice rich richard richards richmond riley rincon ritter
    rivas robbins robertson robles rodgers rogers rollins rosales rosas rosario rosenberg rowe rowland roy rubio rush
    ryan saenz salcedo saldana salinas samuels sandoval sanford santillan saunders sawyer schaefer schroeder schultz
    schwartz sellers sepulveda serna sexton shaffer shah shannon sharma sharp shaw shea shelton shepherd sheppard sherman
    shields short silvestre simon simpson sims sinclair singh singleton skinner sloan small snow snyder solis solomon sosa
    sparks spears spence spencer stafford stanley stanton steele stein stephens stephenson stevens stevenson stewart stokes
    stone strickland stuart suarez summers sutherland sutton swanson sweeney sykes talbot tanner tate terrell terry
    thomas thornton tierney todd townsend tran travis trevino trujillo tucker tyler underwood urbina uribe valdes valdez
    valencia valenzuela vance vaughan vaughn velazquez velez ventura villa villalobos villanueva villarreal villegas vincent
    vinson wade wagner walls walsh walter walters walton warner warren washington waters watkins watts weaver webb webster
    weeks weiss welch wells west wheeler whitaker whitehead whitfield whitney wiggins wilcox wilder wiley wilkerson wilkins
    wilkinson williamson willis winters wolf wolfe wong woodard woods woodward wyatt yang yates yoder york yu zamora zavala
    zhang zhao zimmerman zuniga echevarria etxeberria goikoetxea lizarraga mendizabal muniz oyarzun zubiri cardenas caballero
    calvo cano carrion casas castellano conde cuenca exposito gallardo gil heredia hidalgo izquierdo lorenzo marquina
    mendoza merino montero mosquera nieto pascual pastor plaza quiroga rey rico robledo sanz segura sierra soler soriano
    tapia tejada trejo urrutia valverde vallejo varela velarde vicente yanez zambrano zarate
    """
)
# Surnames that are words of their own: alone they speak for no name (trades, colours, seasons, sizes).
COMMON_WORDS = words(
    """
    archer baker barber best bishop black bright brown bush butler cannon carpenter carter cherry cook cooper cross dyer farmer
    fields fisher fox frost glass gray green gross hall heath hill hood king knight lamb little long love mason moon noble
    page park parks pope porter potter price rich rush sharp short small snow stone summers tanner taylor turner walker
    waters weaver weeks wells west white winters wolf wood woods young leal luz paz valle vale serra porto prado campos fontes
    flores luna montes segura sierra plaza rico rey
    """
)
PARTICLES = r"(?:d[aeo]s?|e|von|van|der|del|de la|la|di|du|y)"
TURNED = r"^\p{Lu}[\p{L}'’-]+(?: \p{L}[\p{L}'’-]+)?, ?\p{Lu}[\p{L}'’.-]*(?: \p{L}[\p{L}'’.-]*)*$"
TITLES = r"^(?:dr|dra|sr|sra|srta|mr|mrs|ms|prof|profa|don|dona|enf|sor)\b\.?\s+"


def plain_texts(texts: pl.Series) -> pl.Series:
    """Texts in lower case without accents, titles, final digits and doubled blanks; `SILVA, Maria` as `maria silva`."""
    plain = texts.str.normalize("NFKD").str.replace_all(r"\p{M}", "")
    plain = plain.str.replace(
        r"^(\p{Lu}\p{Ll}+)(\p{Lu}(?:['’]\p{Lu}|c\p{Lu})?\p{Ll}+)$", "$1 $2"
    ).str.to_lowercase()
    plain = plain.str.replace_all(r"[._\s]+", " ").str.replace_all("’", "'", literal=True).str.strip_chars()
    plain = plain.str.replace(r"^mc ", "mc").str.replace(r";", ",", literal=True)
    plain = plain.str.replace(TITLES, "").str.replace(r"\d+$", "")
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
    starts = plain.str.extract(r"^([a-z'’]+)")
    first = starts.is_in(list(GIVEN)).fill_null(False)
    ends = plain.str.extract(r"([a-z'’]+)$")
    last = ends.is_in(list(SURNAMES)).fill_null(False)
    begun = starts.is_in(list(SURNAMES)).fill_null(False)
    initial = plain.str.contains(r" [a-z]$") | plain.str.contains(r"^[a-z] ")
    given_end = ends.is_in(list(GIVEN)).fill_null(False)
    both = several & ((first & (last | given_end)) | (begun & given_end))
    one = several & (first | last | (begun & initial))
    single = wordy & ~several
    common = starts.is_in(list(COMMON_WORDS)).fill_null(False)
    counts = (both, one, single & first, single & begun & ~first & ~common)
    return (
        int(counts[0].sum()) / texts.len(),
        int(counts[1].sum()) / texts.len(),
        int(counts[2].sum()) / texts.len(),
        int(counts[3].sum()) / texts.len(),
    )


def like_names(texts: pl.Series) -> bool:
    """Whether distinct *texts* read like names of people: titles, `Surname, Given`, or words of the lists."""
    if not texts.len():
        return False
    titled = texts.str.to_lowercase().str.contains(TITLES + r"\p{L}")
    turned = texts.str.contains(TURNED)
    both, one, _, _ = name_shares(texts)
    return max(int(titled.sum()), int(turned.sum())) >= 0.5 * texts.len() or both >= 0.2 or one >= 0.4
