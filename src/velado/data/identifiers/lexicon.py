"""The words of headers in Portuguese, English and Spanish, by what they speak of: lower case, without accents.

Abbreviations that national files use (`NM_`, `NU_`, `CD_`, `DT_` ...) stand among the words.
"""

from __future__ import annotations

from collections.abc import Mapping


def words(text: str) -> frozenset[str]:
    """The words of a list written as one text."""
    return frozenset(text.split())


TOPICS: Mapping[str, frozenset[str]] = {
    # Headers that hint at a role other than identifier.
    "quasi": words(
        "sx pc baires sexo sex gender genero idade age etaria nascimento nasc dtnasc birth birthdate birthday dob cep zip "
        "zipcode postal postcode municipio munic codmunres munres cidade city town bairro neighborhood district "
        "distrito estado uf state county regiao region pais country nacionalidade nationality naturalidade "
        "residencia residence latitude longitude raca race racacor cor etnia ethnicity ethnic civil marital "
        "estciv conjugal escolaridade education schooling instrucao ocupacao ocup occupation profissao profession "
        "cbo workclass empregador employer filhos children parentesco relationship religiao religion edad ciudad "
        "barrio provincia nacimiento ocupacion profesion estudios raza etnica hijos nacionalidad"
    ),
    "sensitive": words(
        "diagnostico diagnosis diag cid cid10 icd icd10 doenca disease hiv aids exame resultado result desfecho "
        "outcome renda income salario salary wage condicao condition medicamento medication tratamento treatment "
        "procedimento procedure obito death cancer severity gravidade divida debt alergia allergy enfermedad "
        "tratamiento ingresos"
    ),
    "free text": words(
        "observacao observacoes obs nota notas note notes comentario comentarios comment comments texto "
        "description descricao anotacao evolucao anamnese laudo remarks narrative observaciones resumo summary"
    ),
}
CODE_WORDS = words(
    "cep zip zipcode postal postcode cbo cid cid10 icd icd10 codmunres munres municipio munic uf sexo sex gender "
    "genero raca race racacor cor etnia ethnicity civil estciv marital religiao religion codigo code"
)
DAY_WORDS = words(
    "dt data date day dia fecha fec dn bd dob nasc nascimento birth birthdate nacimiento obito death inter admission "
    "internacao alta discharge entrada saida ingreso egreso fechamento visit visita when"
)

TAGS: Mapping[str, frozenset[str]] = {
    "person": words(
        "mbr paciente patient pac pcte pat pct pessoa person persona subject subj usubj sujeito sujeto participant "
        "participante partic member membro miembro socio client cliente customer aluno aluna alumno student "
        "estudante estudiante employee empregado funcionario empleado worker trabalhador trabajador usuario user "
        "usr beneficiario beneficiary benef segurado insured assegurado asegurado afiliado enrollee subscriber "
        "assinante titular holder cardholder policyholder dependente citizen cidadao ciudadano morador resident "
        "voter eleitor elector donor doador donante victim vitima respondent respondente individual individuo "
        "applicant borrower mutuario tenant inquilino driver motorista passenger passageiro contribuinte "
        "contribuyente taxpayer caso case proband gestante nascido newborn filiado cooperado candidato detento"
    ),
    # Under these words alone stands who it is; under the second list, of which kind somebody is.
    "surely a person": words(
        "mbr paciente patient pac pcte pessoa person persona subject subj usubj sujeito sujeto participant participante "
        "client cliente customer aluno aluna alumno usuario user beneficiario beneficiary respondent respondente "
        "titular segurado cardholder policyholder"
    ),
    "kind of person": words("case caso gestante nascido newborn individual holder resident candidato"),
    "short person": words("pt cust emp stu"),
    "relative": words(
        "mae pai mother father madre padre conjuge spouse esposo esposa husband wife responsavel responsable "
        "guardian tutor acompanhante parent kin next companheiro cuidador caregiver avo parente pariente familiar"
    ),
    "staff": words(
        "medico medica doctor dr physician nurse enfermeiro enfermeira enfermero profissional professional "
        "profesional provider clinician surgeon cirurgiao prescriber prescritor operator operador teacher professor "
        "docente interviewer entrevistador author autor solicitante atendente therapist terapeuta crm coren npi enferm enfermera enfermeras prof executante prescr preceptor attending digitador "
        "vendedor seller agent agente dentist dentista"
    ),
    "name": words(
        "nome nomes name names nombre nombres nom nm fname lname mname sobrenome surname surnames apellido "
        "apellidos firstname lastname fullname prenome forename apelido nickname alias initials initial iniciais "
        "iniciales maiden nomesocial inits ape alcunha nick"
    ),
    "own name": words(
        "sobrenome surname surnames apellido apellidos firstname lastname fullname prenome forename nickname "
        "initials iniciais iniciales maiden fname lname mname nomesocial apelido inits ape alcunha nick"
    ),
    "part of name": words(
        "first last middle given family primer segundo sobrenome surname surnames apellido apellidos firstname "
        "lastname prenome forename nickname initials initial iniciais iniciales maiden fname lname mname apelido "
        "inits ape alcunha nick"
    ),
    # These are part of a name where nothing but a person stands beside them and letters stand below.
    "bare name": words("first last middle mid given family fn ln"),
    # Short for a professional, where names stand below.
    "short staff": words("doc prov gp med pcp phys"),
    "others": words(
        "emergency emergencia emerg empregador employer patrao created creator nok acomp resp broker corretor "
        "practitioner assist aut autorizador"
    ),
    "registry": words("cart cartorio"),
    "badge": words("fob cracha badge keycard"),
    "whole name": words("full complete completo fullname nombre y"),
    "which name": words(
        "full first last middle given family complete completo social preferred primer segundo"
    ),
    "id": words(
        "id ids ident identificacao identificador identifier identification identificacion uid pid uuid guid ref "
        "reference referencia pk sk"
    ),
    "number": words("number numero num nr nro nu no nbr numb seq"),
    "code": words("code cod codigo cd co"),
    "key": words("key chave clave hash token"),
    "pseudonym": words("pseudonym pseudonimo pseudonym pseudo pseudoid"),
    "event": words(
        "atend visit visita visitas admission admissao admision encounter session sessao sesion appointment consulta "
        "atendimento atencion internacao hospitalizacao hospitalizacion internacion episode episodio stay estadia "
        "order pedido transaction transacao transaccion claim sinistro prescription receita receta invoice fatura "
        "factura sample amostra muestra specimen report ticket booking reserva guia aih apac notificacao notific "
        "notification event evento call chamada trip viagem loan emprestimo accession cirurgia surgery bilhete "
        "requisicao solicitacao referral agendamento triagem coleta contrato contract subscription processo study_visit "
        "message mensagem post purchase compra venda sale"
    ),
    "record": words(
        "prontuario pront prontuar record rec chart mrn nhc hc expediente registro matricula matric matr inscricao "
        "inscr inscripcion legajo numerodo numerodn siape dossier medrec"
    ),
    "weak record": words(
        "historia hist ficha reg protocolo protocol file folder arquivo archivo ra barcode barras"
    ),
    "clinical": words("clinica clinical medical med medico"),
    "cpf": words("cpf"),
    "cns": words("cns cnsusuario"),
    "sus": words("sus"),
    "cnpj": words("cnpj"),
    "rg": words("rg"),
    "ssn": words("ssn nss"),
    "document": words(
        "cnh pis nis nit pasep passaporte passport pasaporte documento document doc dni nie nif curp rfc cuil cuit "
        "cedula rut rne ctps licence license licencia licenca certificate certidao certificado certidoes visa nhs "
        "tin itin cnis identidade identidad identity dnv"
    ),
    "weak document": words("titulo carne"),
    "voting": words("eleitor eleitoral electoral voter"),
    "card": words("card cartao tarjeta carteira carteirinha carnet"),
    "own card": words("carteirinha"),
    "account": words("account acct acc conta cuenta iban pix login senha password username clabe"),
    "insurance": words(
        "insurance seguro convenio plano plan health saude salud sanitaria medicare medicaid sanitario policy "
        "apolice poliza afiliacion afiliacao ss"
    ),
    "policy": words("policy apolice poliza"),
    "email": words("email mail emails correo correio eletronico electronico"),
    "phone": words(
        "telefone telefono fone tel telef telf tlf telfone celular cel cell phone phones mobile movil whatsapp "
        "msisdn whats zap telephone telecom fax cellphone smartphone tels"
    ),
    "contact": words("contact contato contacto"),
    "address": words(
        "endereco logradouro lograd rua street address adress addr direccion domicilio domicile calle avenida av "
        "ender apt apto apartamento apartment"
    ),
    "short address": words("end dir"),
    "home": words("res resid residencia residence residencial residential home casa house"),
    "url": words(
        "url urls uri href website homepage webpage link blog facebook instagram twitter linkedin skype telegram "
        "tiktok handle orcid lattes"
    ),
    "web": words("web"),
    "ip": words("ip ips clientip userip sourceip"),
    "mac": words("mac macaddr"),
    "device": words(
        "device dispositivo aparelho equipamento equipo implant implante pacemaker marcapasso sensor monitor pump "
        "bomba phone_model wearable"
    ),
    "serial": words("serial imei imsi iccid udid idfa gaid meid cookie serialno android"),
    "series": words("serie series"),
    "plate": words("placa plate plates placas vin chassi chassis renavam"),
    "vehicle": words("vehicle veiculo vehiculo car carro auto"),
    "coordinates": words(
        "coord coords coordenada coordenadas coordinate coordinates gps geolocation geolocalizacao geolocalizacion "
        "geo latlon latlng latlong geom geopoint utm easting northing geohash pluscode"
    ),
    "angle": words("lat latitude lon lng long longitude latit longit"),
    "photo": words("foto fotos photo photos fotografia photograph selfie retrato picture pic"),
    "image": words("image imagem imagen img video audio voice voz recording gravacao grabacion scan"),
    "body": words(
        "face facial rosto rostro iris retina palm finger voice voz digital digitais fala dactilar"
    ),
    "biometric": words(
        "biometria biometric biometrics biometrico biometrica fingerprint fingerprints huella huellas voiceprint "
        "faceprint faceid digitais assinatura signature firma rubrica"
    ),
    "print": words("print prints template recognition reconhecimento reconocimiento impressao impresion"),
    "household": words("household familia family hh hid domiciliar lar hogar couple casal home"),
    "study": words("study estudo estudio trial"),
    "security": words("security seguridad seguridade seguranca sec"),
    "tax": words("tax fiscal national nacional military militar state unique unico unica drivers driver"),
    # What the rest of the header may say: then it is no person's name or number.
    "thing": words(
        "hospital clinic clinica unidade unit unidad estabelecimento establecimiento cnes ward enfermaria ala setor "
        "sector department departamento depto servico service servicio school escola escuela university "
        "universidade universidad company empresa employer empregador org organization organizacao institution "
        "instituicao institucion insurer seguradora aseguradora operadora bank banco store loja tienda shop "
        "farmacia pharmacy laboratorio lab laboratory product produto producto item items drug farmaco remedio "
        "medicamento medication medicine vaccine vacina vacuna brand marca manufacturer fabricante model modelo "
        "municipio munic cidade ciudad city town bairro barrio neighborhood neighbourhood district distrito estado "
        "uf provincia province county country pais region regiao localidade place lugar local zona zone village "
        "aldeia variable variavel column coluna campo field table tabela project projeto proyecto course curso "
        "disciplina species especie gene protein virus category categoria fantasia comercial commercial trade "
        "generic generico station estacao center centro centre polo site team equipe equipo campus ubs upa posto "
        "razao disease doenca enfermedad procedure procedimento procedimiento exame exam examen test teste prueba "
        "occupation ocupacao profession profissao job cargo role channel canal fonte source food alimento plant "
        "supplier fornecedor proveedor hotel restaurant street_type feature metric server database movie game "
        "song book film album artist team_name league agravo ocupa redcap"
    ),
    "attribute": words(
        "type tipo tp status situacao estatus date dt fecha fec time hora hour day dia mes month year ano anio yr "
        "count contagem conteo qtd qt qtde quantidade quantity cantidad total tot age idade edad sexo sex gender "
        "genero race raca raza cor color flag fl ind indicator has is tem tiene possui posee score escore balance "
        "saldo class classe clase group grupo cluster level nivel grade duration duracao duracion length size "
        "amount valor vl price preco precio rate taxa weight peso height altura talla temperature state zip cep "
        "zipcode postal postcode education escolaridade educacion marital civil nationality nacionalidade income "
        "renda salary salario outcome desfecho result resultado diagnosis diagnostico diag cid icd cid10 icd10 "
        "condition severity consent verified sent opt provided present valid missing method metodo ratio mean "
        "media average median max min std avg sum percent pct perc freq frequency frequencia visits visitas "
        "consultas relation relationship parentesco religion religiao language idioma segment segmento rating "
        "satisfaction satisfacao volume pressure pressao reason motivo sg st in arm tenure lines sanguineo "
        "blood started updated created modified at ratings version risk risco since until format satisfied "
        "created_at insee basica causa tempo tiempo faixa range band index bmi imc mortality expression "
        "urban rural proximity position opened closed expiry expires expiration validade vencimento issued size_m2"
    ),
    "weak attribute": words("group grupo class classe state index level position present at in st"),
    "birth": words("birth nasc nascimento nacimiento dob birthday birthdate dtnasc death obito"),
    "date": words("data"),
}
JOINTS = words(
    "de do da dos das del la el los las of the e and y para por for com with s a o to from by main principal line "
    "nova new old um uno one dois two ds tx txt cc dl primary secondary atual current origem eletronica digital credit credito debit debito"
)
PLURALS_THAT_COUNT = words(
    "patients pacientes persons people pessoas personas subjects participants participantes members membros "
    "clients clientes customers users usuarios students alunos alumnos employees funcionarios households familias "
    "filhos hijos children doctors medicos nurses visits visitas admissions internacoes sessions sessoes records "
    "registros cases casos deaths obitos cards accounts contas cuentas devices phones_count events eventos cells "
    "gestacoes consultas orders claims loans"
)
