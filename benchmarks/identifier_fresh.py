"""A second part of the corpus, written when the rules were done: other files, other habits.

The five that it missed at first were mended afterwards; `identifiers` names the first figures.
"""

from __future__ import annotations

from benchmarks.identifier_columns import MAKERS, Labelled, read_lines
from benchmarks.identifier_headers import Entry

HEADERS: tuple[Entry, ...] = (
    (
        "pt",
        "name",
        "NOME_BENEFICIARIO;nm_completo;nomecliente;Nome Completo do Aluno;NM_SOCIAL_PACIENTE;nome_conjuge;"
        "mae_nome;nomedamae;nome_eleitor;razao_nome_titular",
    ),
    ("pt", "document", "nr_identidade;num_passaporte;numero_cnh;doc_paciente;n_documento;DOCUMENTO"),
    ("pt", "cpf", "cpf_aluno;CPFCLIENTE;nr_cpf_cnpj"),
    ("pt", "cns", "num_cns;cns_paciente;cartao_nacional_saude"),
    (
        "pt",
        "record",
        "id_aluno;numprontuario;cd_paciente;codigo_paciente;nu_matricula;ID_PACIENTE;num_registro_hospitalar;"
        "idcliente;id_internacao;cod_usuario",
    ),
    ("pt", "phone", "telefone_residencial;num_telefone;fone2;contato_emergencia;tel_mae;CELULAR_1"),
    ("pt", "address", "endereco_completo;nome_rua;endereco_paciente;ENDERECO_RES;nu_logradouro"),
    ("pt", "email", "e-mail do responsável;email_aluno;EMAIL_PAC"),
    ("pt", "account", "num_conta;conta_poupanca;pix"),
    ("pt", "plate", "placa do veículo;PLACA_AUTO"),
    ("pt", "photo", "foto_perfil;imagem_face"),
    (
        "pt",
        "none",
        "nome_curso;tipo_cartao;dt_cadastro;data_admissao;ano_ingresso;situacao_cadastro;qtd_contas;valor_conta;"
        "peso_nascer;sexo_paciente;idade_paciente;bairro_residencia;uf_nascimento;hemograma;ureia;gravidade;"
        "tempo_contato;nome_da_doenca;codigo_ibge;cod_cid;numero_de_filhos;numero_leitos;tipo_contato;nivel_renda;"
        "regime;modalidade;media_final;frequencia;turno;cirurgia;alergias;fumante",
    ),
    (
        "en",
        "name",
        "Last Name;PATIENT_NAME;first name;ContactName;father_name;doctor_name;legal_name;student_name;"
        "emp_name;passenger_name",
    ),
    (
        "en",
        "record",
        "patient number;Patient No.;PATIENTID;subject_number;id_number;case_number;participant_no;"
        "resident_id;guest_id;rec_id;employee_id;transaction_id;medical_record;pat_id;study_subject_id",
    ),
    (
        "en",
        "document",
        "passport_number;drivers_license_no;doc_number;identity_number;certificate_no;license no",
    ),
    ("en", "ssn", "SSN;social security #;patient_ssn"),
    ("en", "phone", "tel;phone_home;cell_no;telephone_number;contact_phone;mobile_phone"),
    ("en", "address", "address_line_1;mailing_addr;street_no;patient_address;home_street"),
    ("en", "email", "email_address;work_email;e_mail"),
    ("en", "account", "bank_acct;account_id;acct_number"),
    ("en", "card", "creditcard;card_no;cc_num;health_card"),
    ("en", "member", "member_number;beneficiary_id;insurance_id;policy number"),
    ("en", "url", "web_url;facebook_profile;personal_website"),
    ("en", "ip", "ip;remote_ip;IP Address"),
    ("en", "device", "device_serial_number;imei;deviceid;serial no"),
    ("en", "plate", "license plate;vehicle_registration_plate;VIN"),
    ("en", "photo", "photograph;profile_picture"),
    ("en", "biometric", "fingerprint_id;iris_scan;signature_image"),
    ("en", "coordinates", "gps;latlong;coordinates"),
    (
        "en",
        "none",
        "visit_type;systolic;hematocrit;wbc;platelet_count;region;insurance_type;plan_type;admission_type;"
        "discharge_status;hospital_type;age_group;date_of_birth;time_to_event;event_type;order_amount;order_date;"
        "customer_segment;customer_age;account_type;loan_amount;job;housing;education_level;contact_type;campaign;"
        "duration;previous;poutcome;pdays;balance;chest_pain;thal;oldpeak;sample_weight;test_score;class;"
        "family_size;cabin;fare;embarked;survived;pclass;carat;clarity;unit_price;store_name;country_name;"
        "department_id;number_of_visits;email_count;device_model;relationship_status",
    ),
    ("es", "name", "nombre_cliente;Apellidos y Nombre;nombre_del_padre;apellido_materno;primer_nombre"),
    ("es", "document", "numero_documento;dni_paciente;pasaporte_num;n_cedula;nif_titular"),
    ("es", "record", "numero_historia_clinica;id_cliente;cod_paciente;num_paciente;idpaciente;nro_legajo"),
    ("es", "phone", "telefono_contacto;tel_movil;numero_de_telefono"),
    ("es", "address", "direccion_paciente;domicilio_actual;calle_numero"),
    ("es", "email", "correo_paciente;email_cliente"),
    ("es", "member", "numero_poliza;tarjeta_sanitaria_num"),
    (
        "es",
        "none",
        "fecha_ingreso;edad_paciente;sexo_paciente;nombre_ciudad;tipo_cuenta;estado;comunidad_autonoma;nivel;"
        "tension_arterial;hemoglobina;cantidad;precio;fecha_visita;duracion;escolaridad;nombre_empresa;especialidad",
    ),
)

MAKERS.update(
    {
        "name es": lambda r, i: (
            f"{r.choice(['Ximena', 'Iker', 'Lucía', 'Álvaro'])} {r.choice(['Vidal', 'Ibarra', 'Ruiz'])}"
        ),
        "name two": lambda r, i: (
            f"{r.choice(['Enzo', 'Cauê', 'Thaís', 'Mirtes'])} de {r.choice(['Assis', 'Toledo', 'Bragança'])}"
        ),
        "name dots": lambda r, i: (
            f"{r.choice(['ana', 'rui', 'eva'])}.{r.choice(['lima', 'reis', 'costa'])}{i}"
        ),
        "login": lambda r, i: f"{r.choice(['jsmith', 'alima', 'mcosta'])}{i}",
        "nickname": lambda r, i: r.choice(["Zeca", "Duda", "Tuca", "Beto", "Nina", "Guga"]),
        "order code": lambda r, i: f"ORD-{2020 + i % 4}-{i:06d}",
        "stage": lambda r, i: r.choice(["T1N0M0", "T2N1M0", "T3N0M1", "T4N2M0"]),
        "band": lambda r, i: r.choice(["20-29", "30-39", "40-49", "50+"]),
        "latlon cell": lambda r, i: f"({r.uniform(35, 43):.4f}; {r.uniform(-9, 3):.4f})",
        "epoch": lambda r, i: str(1700000000 + r.randrange(10**7)),
        "antibiotic": lambda r, i: r.choice(
            ["Ampicillin", "Ceftriaxone", "Piperacillin Tazobactam", "Vancomycin"]
        ),
        "school": lambda r, i: r.choice(["EE Santos Dumont", "Colégio Dom Bosco", "EM Anísio Teixeira"]),
        "flag word": lambda r, i: r.choice(["low", "medium", "high"]),
        "grade": lambda r, i: r.choice(["A", "B", "C", "D"]),
    }
)
COLUMNS: tuple[Labelled, ...] = read_lines(
    """
    es | name | dato1 | name es | 1 12
    pt | name | dato2 | name two | 1 12
    - | name | dato3 | name dots | 1 12
    en | account | login;username | login | 1 12
    pt | name | apelido | nickname | 40
    - | name | g1 | full | 24
    - | name | g2 | full lower | 60
    - | name | g3 | initial | 12
    en | name | owner | full | 12
    - | record | g4 | order code | 1
    en | record | order_id | order code | 1
    - | coordinates | g5 | latlon cell | 1 12
    - | cpf | g6 | cpf number | 40
    - | card | g7 | card | 60
    - | phone | g8 | phone br plain | 60
    - | ssn | g9 | ssn | 12
    - | email | remarks2 | tail note | 1
    en | address | residence | street en | 1 12
    - | plate | g10 | plate mercosul | 40
    - | ip | g11 | ipv4 | 60
    - | uuid | g12 | uuid | 40
    pt | record | paciente | person number | 40
    es | record | expediente | letters | 1
    en | phone | mobile_no | long number | 12
    pt | member | num_carteira_plano | letters | 1
    en | device | pacemaker_serial | serial | 1
    en | none | stage;tnm | stage | 1
    en | none | age_band | band | 1
    en | none | created_at;updated | epoch | 1
    en | none | antibiotic | antibiotic | 1
    pt | none | escola | school | 1
    en | none | risk;priority | flag word | 1
    en | none | grade;quality | grade | 1
    en | none | potassium;tsh;score_total | decimal | 1
    pt | none | leucocitos;plaquetas | big money | 1
    en | none | patients;followers | count | 1
    es | none | precio;coste | money | 1
    pt | none | bairro;localidade | town | 1
    en | none | state_name | country | 1
    en | none | arm;cohort | flag word | 1
    en | none | lat | degrees coarse | 1
    pt | none | dose_mg | scale | 1
    en | none | department_name;clinic | ward | 1
    pt | none | hora;dt_alta | time | 1
    es | none | resultado_prueba | result | 1
    en | none | procedure_code | procedure code | 1
    en | none | mother_tongue | country | 1
    """
)
