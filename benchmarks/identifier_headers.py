"""Headers labelled by hand: what they identify by, or "none"; the held-back part was written before any tuning.

Each entry of a part is (language, kind, headers parted by semicolons). A kind other than "none" means that a column
under this header points at a person (or at a thing of theirs) and must not be published unread.
"""

from __future__ import annotations

Entry = tuple[str, str, str]

TUNED: tuple[Entry, ...] = (
    (
        "pt",
        "name",
        "nome;Nome do paciente;NOME_PACIENTE;nomepaciente;nm_pac;NO_PACIENTE;nome_completo;Nome da mãe;NM_MAE;"
        "nomeMae;sobrenome;nome social;NOMEPAI;ds_nome;nome_responsavel;iniciais;nome do médico;NOME_ALUNO",
    ),
    ("pt", "cpf", "CPF;cpf_paciente;NU_CPF;nr_cpf;c.p.f.;cpfResponsavel;num_cpf_titular"),
    ("pt", "cns", "CNS;cartao_sus;cartaosus;NU_CNS;numero_sus;Cartão SUS;CNS_PAC;num_cartao_sus"),
    (
        "pt",
        "document",
        "RG;num_doc;nr_documento;CNH;passaporte;titulo_eleitor;pis_pasep;NIS;carteira_trabalho;doc_identidade;"
        "certidao_nascimento;certidão de óbito;CTPS",
    ),
    (
        "pt",
        "record",
        "prontuario;nr_prontuario;Nº do prontuário;matric;MATRICULA;id_paciente;ID;cod_paciente;codpaciente;"
        "registro;num_registro;NU_NOTIFIC;id_atendimento;numero_aih;paciente;código do cliente;inscricao;"
        "id_usuario;CD_PESSOA;NUMERODO",
    ),
    ("pt", "member", "carteirinha;nr_carteira_convenio;num_beneficiario;id_beneficiario;numero_apolice"),
    ("pt", "account", "conta_corrente;nr_conta;chave_pix;login;conta bancaria"),
    ("pt", "email", "email;E-mail;e_mail_paciente;ds_email;emailContato"),
    ("pt", "phone", "tel;telefone;cel;celular;ddd_fone;NU_TELEFONE;tel_res;fone_contato;whatsapp;contato"),
    (
        "pt",
        "address",
        "endereco;end_res;Endereço residencial;logradouro;rua;NO_LOGRADOURO;numero_casa;END_PACIENTE",
    ),
    ("pt", "plate", "placa;placa_veiculo;chassi;renavam"),
    ("pt", "device", "numero_serie;nr_serie_aparelho;imei;id_dispositivo"),
    ("pt", "photo", "foto;foto_paciente;fotografia"),
    ("pt", "biometric", "biometria;impressao_digital;assinatura"),
    ("pt", "coordinates", "coordenadas;gps;geolocalizacao"),
    (
        "pt",
        "none",
        "idade;sexo;dt_nasc;DTNASC;data_nascimento;municipio;NO_MUNICIPIO;nome_hospital;nome do medicamento;CNES;"
        "cod_procedimento;cid10;tp_documento;tipo_logradouro;bairro;cep;uf;raca_cor;escolaridade;num_filhos;"
        "qtd_visitas;custo_reais;desfecho;data_registro;velocidade;capacidade;pressao_arterial;hemoglobina;"
        "nome_fantasia;nome da escola;convenio;enfermaria;id_sexo;race_id;co_municipio;plaquetas;cor;"
        "nome_exame;peso;altura;dt_internacao;tempo_espera;estado_civil;identidade_genero;ds_diagnostico;"
        "cod_munic;numero_consultas;idade_mae;escolaridade_mae;sg_uf;tem_telefone;possui_email",
    ),
    (
        "en",
        "name",
        "name;patient_name;patientname;PatientName;first_name;lastname;full name;surname;mother_name;"
        "physician_name;given names;maiden_name;emergency_contact_name;nickname;initials;pt_name;FNAME",
    ),
    (
        "en",
        "record",
        "id;patient_id;PatientID;patid;MRN;medical record number;chart_no;subject;USUBJID;participant_id;"
        "record_id;user_id;customer_key;student_number;employee_no;person_id;visit_id;encounter_id;admission_id;"
        "patient;case_id;household_id;patient_ref;pseudonym;study_id;doctor_id",
    ),
    ("en", "ssn", "ssn;social_security_number;SocialSecurity;ssn_last4"),
    (
        "en",
        "document",
        "passport;passport_no;driver_license;drivers licence number;national_id;tax_id;birth_certificate_no;"
        "license_number;certificate_number;document_number",
    ),
    ("en", "card", "credit_card;card_number;cardno;card"),
    ("en", "member", "member_id;insurance_number;policy_no;health_plan_beneficiary_number;medicare_number"),
    ("en", "account", "account;account_number;acct_no;iban;bank_account;username"),
    ("en", "email", "email;e-mail address;emailaddress;contact_email"),
    ("en", "phone", "phone;phone_number;mobile;cell phone;fax;telephone;home_phone;tel_no"),
    ("en", "address", "address;street;street_address;home address;addr1;house_number;mailing_address"),
    ("en", "url", "url;website;homepage;facebook;linkedin_profile"),
    ("en", "ip", "ip;ip_address;ipaddress;client_ip;IPv4"),
    ("en", "mac", "mac_address;mac"),
    ("en", "device", "device_id;serial_number;serialno;device_serial;device identifier;imei"),
    ("en", "plate", "license_plate;plate;vin;vehicle_id"),
    ("en", "photo", "photo;photo_url;picture;full_face_photo"),
    ("en", "biometric", "fingerprint;biometric_template;signature;voiceprint"),
    ("en", "coordinates", "gps_coordinates;coordinates;geolocation"),
    (
        "en",
        "none",
        "age;sex;gender;race;education;marital_status;native_country;occupation;income;hours_per_week;"
        "final_weight;capital_gain;LIMIT_BAL;PAY_0;BILL_AMT1;default.payment.next.month;housing_median_age;"
        "households;population;ocean_proximity;bi_rads_assessment;density;children;religion;method;kt_v;hiv;"
        "session_date;lab_01;q1;flag_0;zip;dob;ethnicity;diagnosis;town;stay;admitted;ward;room;heart_rate;spo2;"
        "visit_year;birth_year;hospital_name;drug_name;product_name;city name;insurer_name;document_type;"
        "card_type;account_balance;number_of_patients;n_visits;cell_count;white cells;end_date;email_sent;"
        "patient_age;patient_outcome;cardiac_output;covid;lipid;candidate_vaccine;address_city;hospital_id;"
        "product_id;category_id;device_type;platelets;contact_date;identity_gender;user_rating",
    ),
    (
        "es",
        "name",
        "nombre;nombre_paciente;apellidos;Nombre y apellidos;primer_apellido;nombreMadre;nombre_completo",
    ),
    ("es", "document", "DNI;NIE;nif;cedula;pasaporte;nro_documento;curp;CUIL;licencia_conducir"),
    (
        "es",
        "record",
        "historia_clinica;nhc;nro_hc;expediente;id_paciente;codigo_paciente;num_historia;cliente",
    ),
    ("es", "member", "num_afiliado;tarjeta_sanitaria;poliza;numero_seguridad_social"),
    ("es", "account", "cuenta;numero_cuenta;usuario"),
    ("es", "email", "correo;correo_electronico;correoElectrónico"),
    ("es", "phone", "telefono;tlf;movil;teléfono móvil;contacto"),
    ("es", "address", "direccion;domicilio;calle;dirección postal"),
    ("es", "photo", "foto;imagen_rostro"),
    ("es", "biometric", "huella;firma;huella_dactilar"),
    ("es", "device", "numero_de_serie;dispositivo_id"),
    (
        "es",
        "none",
        "edad;sexo;fecha_nacimiento;provincia;nombre_hospital;nombre_medicamento;diagnostico;peso;talla;"
        "tipo_documento;estado_civil;nivel_estudios;ocupacion;codigo_postal;ciudad;fecha_ingreso;glucosa;"
        "presion_sistolica;numero_hijos;nombre_municipio;resultado;dias_estancia;num_consultas",
    ),
)

HELD_BACK: tuple[Entry, ...] = (
    (
        "pt",
        "name",
        "NomeCidadao;nm_usuario;NO_MAE;nome_do_titular;prenome;nome_acompanhante;nm_beneficiario;apelido;"
        "nome_recem_nascido;NOMEDOPACIENTE;nm_profissional;nome-segurado",
    ),
    ("pt", "cpf", "CPF_CNPJ;cpf do titular;cpfmae;NR_CPF_USUARIO"),
    ("pt", "cns", "cns_usuario;nu_cartao_sus;CNSPACIENTE"),
    (
        "pt",
        "document",
        "rg_paciente;identidade;numero_documento_identificacao;nr_cnh;NU_DOC;nit;nr_titulo_eleitor",
    ),
    (
        "pt",
        "record",
        "num_pront;codigo_usuario;id_pessoa;IDPACIENTE;nr_internacao;numero_atendimento;participante;"
        "reg_paciente;RA_ALUNO;matricula_funcional;chave_paciente;id_familia;cod_cliente;sujeito;nr_protocolo",
    ),
    ("pt", "member", "numero_carteirinha;cod_beneficiario;carteira_plano;matricula_convenio"),
    ("pt", "phone", "fone_res;tel_celular;telefone1;nr_celular;zap;tel contato"),
    ("pt", "email", "correio_eletronico;email2;endereco_eletronico"),
    ("pt", "address", "ds_endereco;end_completo;enderecoResidencial;nr_residencia;av_rua;ds_logradouro"),
    ("pt", "device", "nr_serie_marcapasso;dispositivo;serial_equipamento"),
    ("pt", "plate", "placa_carro;nr_placa"),
    ("pt", "biometric", "digitais;assinatura_digital;reconhecimento_facial"),
    (
        "pt",
        "none",
        "faixa_etaria;dt_obito;tp_parto;nome_produto;nm_municipio;DS_PROCEDIMENTO;especialidade;creatinina;"
        "nota_dor;qt_diarias;VAL_TOT;renda_familiar;zona;ocupacao;causa_basica;hora_entrada;frequencia_cardiaca;"
        "nome_vacina;st_ativo;idade_gestacional;numero_gestacoes;regiao;temperatura;consultas_pre_natal;"
        "cod_estabelecimento;nome_laboratorio;tipo_sanguineo;ind_fumante;tempo_internacao;ano_nasc",
    ),
    (
        "en",
        "name",
        "last_name;middle initial;Patient Full Name;client_name;nurse_name;next_of_kin;spouse_name;lname;"
        "customername;preferred_name",
    ),
    (
        "en",
        "record",
        "pid;subject_id;SUBJID;med_rec_no;hospital_number;patient_identifier;client_id;respondent;"
        "order_id;claim_id;specimen_id;enrollee_id;unique_id;uid;patient_code;episode_no;loan_id;accession_number",
    ),
    ("en", "ssn", "social_sec_no;SSN4;ss_number"),
    ("en", "document", "dl_number;passport id;visa_number;nhs_number;professional_license;state_id_number"),
    ("en", "account", "acctnum;bank_account_no;login_name;checking_account"),
    ("en", "card", "cc_number;debit_card;cardholder"),
    ("en", "member", "subscriber_id;medicaid_id;policyholder;group_member_number"),
    ("en", "phone", "work_phone;cellphone;phone2;mobile_no;fax_number;contact_number;emergency contact"),
    ("en", "address", "addr_line_2;residence_address;street_name;apt_no;billing address;home_addr"),
    ("en", "url", "profile_url;instagram;web_page;twitter_handle"),
    ("en", "ip", "source_ip;ip_addr;last_login_ip"),
    ("en", "device", "imei_number;implant_serial;device;udid;android_id;pump_serial_no"),
    ("en", "plate", "plate_number;car_plate;vehicle_plate"),
    ("en", "photo", "face_image;patient_photo;selfie"),
    ("en", "biometric", "finger_prints;retina_scan;voice_recording"),
    ("en", "coordinates", "geo_point;home_coordinates"),
    (
        "en",
        "none",
        "bmi;systolic_bp;length_of_stay;discharge_date;smoker;employment_type;school_type;drug_code;icd_code;"
        "procedure;payment_method;score;treatment_arm;company_size;nationality;number_of_children;num_rooms;"
        "record_count;patient_weight;total_charges;phone_service;multiple_lines;paperless_billing;tenure;"
        "card_present_flag;account_age;brand_name;ward_name;station;species;sepal_length;recorded_at;"
        "identification_method;mother_education;student_teacher_ratio;doctor_visits;patients;model_name",
    ),
    ("es", "name", "nombres;apellido_paterno;apellido2;nombre_tutor;nombre_alumno;nom_paciente"),
    (
        "es",
        "document",
        "documento_identidad;num_dni;cedula_ciudadania;rut;nro_pasaporte;tipo_y_numero_documento",
    ),
    ("es", "record", "num_expediente;hist_clinica;id_persona;legajo;codigo_cliente;id_usuario;matrícula"),
    ("es", "member", "nss;numero_afiliacion;num_tarjeta"),
    ("es", "phone", "celular;num_telefono;tel_fijo"),
    ("es", "address", "dir_paciente;direccion_domicilio;num_calle"),
    ("es", "email", "correo_e;mail_contacto"),
    ("es", "biometric", "huellas;firma_paciente"),
    (
        "es",
        "none",
        "anio;fecha_alta;hospital;nombre_centro;unidad;servicio;grupo_sanguineo;ingresos;municipio;barrio;"
        "tratamiento;sistolica;colesterol;motivo_consulta;tipo_seguro;pais;nombre_producto;turno",
    ),
)


def labelled(part: tuple[Entry, ...]) -> list[tuple[str, str, str]]:
    """(language, kind, header), one for each header of the part."""
    return [(language, kind, name) for language, kind, names in part for name in names.split(";")]
