"""Columns labelled by hand: a header, made-up values, rows a person; the held-back part was written before any tuning.

Nobody in them exists. Half of the names come from lists that velado's own lists do not share.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass

Maker = Callable[[random.Random, int], str]
ROWS = 600

_GIVEN, _FAMILY, _RARE, _RARE_FAMILY, _ICD = (
    line.split()
    for line in (
        "Ana João Maria José Carlos Lúcia Pedro Rita Mary James Robert Linda Juan Carmen Luis Elena Paulo Sônia",
        "Silva Souza Lima Pereira Costa Smith Johnson Brown Davis García Martínez López Gomes Rocha Reis Alves",
        "Wojciech Ayodele Kenji Thuy Jorunn Priyanka Uiara Potira Gertrudes Anselmo Xiomara Nahuel Ezequiel",
        "Kowalczyk Adebayo Takahashi Pham Haugen Banerjee Krenak Wapichana Zimmermann Bittencourt Quispe",
        "I10 E11.9 J18.9 N18.5 C50.9 O80 F32.1 B20 K35.8 S72.0 A90 U07.1 G40.9 M54.5",
    )
)


def _of(values: str) -> Maker:
    items = values.split(";")
    return lambda r, i: r.choice(items)


def _digits(r: random.Random, n: int) -> str:
    return "".join(r.choice("0123456789") for _ in range(n))


def _cpf(r: random.Random) -> str:
    body = [r.randrange(10) for _ in range(9)]
    for _ in range(2):
        rest = sum(d * w for d, w in zip(body, range(len(body) + 1, 1, -1), strict=True)) % 11
        body.append(0 if rest < 2 else 11 - rest)
    return "".join(map(str, body))


def _luhn(r: random.Random) -> str:
    body = [4, *(r.randrange(10) for _ in range(14))]
    total = sum(d if i % 2 else (2 * d - 9 if d > 4 else 2 * d) for i, d in enumerate(body))
    return "".join(map(str, [*body, -total % 10]))


def _iban(r: random.Random) -> str:
    body = _digits(r, 20)
    rest = 98 - int(body + "142800") % 97
    return f"ES{rest:02d}{body}"


def _cns(r: random.Random) -> str:
    while True:
        body = "7" + _digits(r, 13)
        rest = sum(int(d) * w for d, w in zip(body, range(15, 1, -1), strict=True)) % 11
        if rest != 1:
            return body + str((11 - rest) % 11)


def _full(r: random.Random) -> str:
    return f"{r.choice(_GIVEN)} {r.choice(_FAMILY)} {r.choice(_FAMILY)}"


def _rare(r: random.Random) -> str:
    return f"{r.choice(_RARE)} {r.choice(_RARE_FAMILY)}"


MAKERS: dict[str, Maker] = {
    "cpf": lambda r, i: (lambda c: f"{c[:3]}.{c[3:6]}.{c[6:9]}-{c[9:]}")(_cpf(r)),
    "cpf digits": lambda r, i: _cpf(r),
    "cpf number": lambda r, i: str(int(_cpf(r))),
    "cns": lambda r, i: _cns(r),
    "rg": lambda r, i: f"{r.randrange(10, 60)}.{_digits(r, 3)}.{_digits(r, 3)}-{r.choice('0123456789X')}",
    "rg mg": lambda r, i: f"MG-{r.randrange(10, 20)}.{_digits(r, 3)}.{_digits(r, 3)}",
    "ssn": lambda r, i: f"{r.randrange(100, 600)}-{r.randrange(10, 99)}-{r.randrange(1000, 9999)}",
    "dni": lambda r, i: (lambda n: f"{n:08d}{'TRWAGMYFPDXBNJZSQVHLCKE'[n % 23]}")(r.randrange(10**7, 10**8)),
    "iban": lambda r, i: _iban(r),
    "iban blanks": lambda r, i: (lambda t: " ".join(t[j : j + 4] for j in range(0, 24, 4)))(_iban(r)),
    "card": lambda r, i: _luhn(r),
    "card blanks": lambda r, i: (lambda t: " ".join(t[j : j + 4] for j in range(0, 16, 4)))(_luhn(r)),
    "email": lambda r, i: f"{r.choice(_GIVEN).lower()}{i}@{r.choice(['mail.com', 'uni.br', 'x.org'])}",
    "phone br": lambda r, i: f"({r.choice([11, 21, 31, 85])}) 9{_digits(r, 4)}-{_digits(r, 4)}",
    "phone br digits": lambda r, i: f"{r.choice([11, 21, 31, 85])}9{_digits(r, 8)}",
    "phone br plain": lambda r, i: f"{r.choice([11, 21, 31])} 9{_digits(r, 4)}-{_digits(r, 4)}",
    "phone us": lambda r, i: f"{r.randrange(201, 989)}-{r.randrange(200, 999)}-{_digits(r, 4)}",
    "phone us digits": lambda r, i: f"{r.randrange(201, 989)}{r.randrange(200, 999)}{_digits(r, 4)}",
    "phone es": lambda r, i: f"6{_digits(r, 2)} {_digits(r, 3)} {_digits(r, 3)}",
    "phone +": lambda r, i: f"+{r.choice([34, 55, 44])} {_digits(r, 3)} {_digits(r, 6)}",
    "url": lambda r, i: f"https://example.org/u/{r.choice(_GIVEN).lower()}{i}",
    "handle": lambda r, i: f"@{r.choice(_GIVEN).lower()}_{i}",
    "ipv4": lambda r, i: ".".join(str(r.randrange(1, 255)) for _ in range(4)),
    "ipv6": lambda r, i: ":".join(f"{r.randrange(65536):x}" for _ in range(8)),
    "mac": lambda r, i: ":".join(f"{r.randrange(256):02x}" for _ in range(6)),
    "uuid": lambda r, i: str(uuid.UUID(int=r.getrandbits(128), version=4)),
    "hash": lambda r, i: f"{r.getrandbits(256):064x}",
    "pseudonym": lambda r, i: "".join(r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(16)),
    "plate": lambda r, i: (
        "".join(r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(3)) + "-" + _digits(r, 4)
    ),
    "plate mercosul": lambda r, i: (
        "".join(r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(3))
        + f"{r.randrange(10)}{r.choice('ABCDEFGHIJ')}{_digits(r, 2)}"
    ),
    "plate es": lambda r, i: (
        _digits(r, 4) + " " + "".join(r.choice("BCDFGHJKLMNPRSTVWXYZ") for _ in range(3))
    ),
    "point": lambda r, i: f"{r.uniform(-33, 5):.5f}, {r.uniform(-73, -35):.5f}",
    "degrees": lambda r, i: f"{r.uniform(-33, 5):.6f}",
    "degrees coarse": lambda r, i: f"{r.uniform(32, 42):.2f}",
    "full": lambda r, i: _full(r),
    "full caps": lambda r, i: _full(r).upper(),
    "full lower": lambda r, i: _full(r).lower(),
    "full turned": lambda r, i: f"{r.choice(_FAMILY).upper()}, {r.choice(_GIVEN).upper()}",
    "initial": lambda r, i: f"{r.choice('ABCJLMPR')}. {r.choice(_FAMILY)}",
    "doctor": lambda r, i: f"Dr. {r.choice(_GIVEN)} {r.choice(_FAMILY)}",
    "given": lambda r, i: r.choice(_GIVEN),
    "family": lambda r, i: r.choice(_FAMILY),
    "rare": lambda r, i: _rare(r),
    "rare caps": lambda r, i: _rare(r).upper(),
    "mixed names": lambda r, i: _rare(r) if r.random() < 0.5 else _full(r),
    "street": lambda r, i: f"Rua {r.choice(_FAMILY)}, {r.randrange(1, 2000)}",
    "street en": lambda r, i: (
        f"{r.randrange(1, 900)} {r.choice(_FAMILY)} {r.choice(['Street', 'Ave', 'Road'])}"
    ),
    "street es": lambda r, i: f"Calle {r.choice(_FAMILY)} {r.randrange(1, 200)}",
    "file": lambda r, i: f"img_{i:05d}.jpg",
    "serial": lambda r, i: f"SN{_digits(r, 8)}",
    "person code": lambda r, i: f"P{i:05d}",
    "person number": lambda r, i: str(i + 1),
    "long number": lambda r, i: str(700000 + 37 * i),
    "letters": lambda r, i: r.choice(["A1", "B2", "C3", "D4"]),
    "tail note": lambda r, i: (
        f"ligar para {r.choice(_GIVEN)}@mail.com" if i % 30 == 0 else r.choice(["ok", "retorno"])
    ),
    "tail phone": lambda r, i: f"tel. (11) 9{_digits(r, 4)}-{_digits(r, 4)}" if i % 25 == 0 else "normal",
    "tail cpf": lambda r, i: (
        f"CPF {_cpf(r)[:3]}.{_digits(r, 3)}.{_digits(r, 3)}-{_digits(r, 2)}" if i % 20 == 0 else "sim/nao"
    ),
    "tail names": lambda r, i: _full(r) if i % 5 == 0 else r.choice(["hospital", "casa", "vizinho"]),
    "note": lambda r, i: (
        f"paciente {i} refere dor de {r.choice(['cabeca', 'barriga'])} desde {r.randrange(1, 30)} dias"
    ),
    # harmless
    "decimal": lambda r, i: f"{r.gauss(100, 15):.1f}",
    "decimal 4": lambda r, i: f"{r.gauss(1, 0.2):.4f}",
    "age": lambda r, i: str(r.randrange(0, 100)),
    "scale": lambda r, i: str(r.choice([1, 2, 3, 4, 5, 99])),
    "yes": _of("yes;no"),
    "sim": _of("Sim;Não"),
    "01": _of("0;1"),
    "icd": lambda r, i: r.choice(_ICD),
    "icd full": lambda r, i: f"{r.choice('ABCDEFGHIJKLMNSTZ')}{_digits(r, 2)}{_digits(r, 1)}",
    "cep": lambda r, i: f"{_digits(r, 5)}-{_digits(r, 3)}",
    "zip": lambda r, i: str(10000 + r.randrange(400)),
    "zip4": lambda r, i: f"9{_digits(r, 4)}-{_digits(r, 4)}",
    "date": lambda r, i: f"2024-{r.randrange(1, 13):02d}-{r.randrange(1, 29):02d}",
    "date br": lambda r, i: f"{r.randrange(1, 29):02d}/{r.randrange(1, 13):02d}/2023",
    "date digits": lambda r, i: f"2024{r.randrange(1, 13):02d}{r.randrange(1, 29):02d}",
    "year": lambda r, i: str(r.randrange(1930, 2025)),
    "time": lambda r, i: f"{r.randrange(24):02d}:{r.randrange(60):02d}",
    "stamp": lambda r, i: f"2024-03-01T{r.randrange(24):02d}:{r.randrange(60):02d}:00",
    "count": lambda r, i: str(int(r.expovariate(0.2))),
    "money": lambda r, i: f"{r.lognormvariate(7, 1.1):.2f}",
    "money comma": lambda r, i: f"{r.lognormvariate(7, 1.1):.2f}".replace(".", ","),
    "big money": lambda r, i: str(int(r.lognormvariate(14, 1.5))),
    "town code": lambda r, i: str(310000 + r.randrange(900)),
    "unit code": lambda r, i: str(2000000 + r.randrange(300) * 17),
    "procedure code": lambda r, i: (
        f"03{r.randrange(1, 9):02d}{r.randrange(1, 9):02d}{r.randrange(1, 99):04d}"
    ),
    "drug code": lambda r, i: (
        f"{r.choice('ABCN')}{r.randrange(1, 12):02d}{r.choice('AB')}{r.choice('AB')}{r.randrange(1, 9):02d}"
    ),
    "town": _of(
        "São Paulo;Ribeirão Preto;Niterói;Goiânia;João Pessoa;Belém;Santos;Juiz de Fora;Maceió;Itajaí"
    ),
    "town en": _of(
        "Springfield;Salem;Austin;Jackson;Charlotte;Madison;Portland;San Jose;Saint Paul;Fort Worth"
    ),
    "clinic": _of("Hospital São José;Santa Casa;Hospital das Clínicas;UBS Vila Nova;Hospital Dom Pedro II"),
    "drug": _of(
        "Dipirona;Losartana;Metformin;Aspirin;Sodium Chloride;Amoxicilina;Insulin Glargine;Omeprazol"
    ),
    "colour": _of("rosa;azul;verde;violeta;branca;preta"),
    "month": _of("April;May;June;August;March"),
    "weekday": _of("segunda;terça;quarta;quinta;sexta"),
    "job": _of(
        "Software Engineer;Nurse;Teacher;Truck Driver;Sales Manager;Adm-clerical;Exec-managerial;Farmer"
    ),
    "country": _of("Brazil;United States;Spain;Mexico;Costa Rica;Puerto Rico;Portugal;Canada;India;Cuba"),
    "ward": _of("ICU;cardiology;surgery;Clínica Médica;UTI Neonatal"),
    "blood": _of("A+;O-;B+;AB-;O+"),
    "likert": _of("Strongly agree;Agree;Neutral;Disagree;Strongly disagree"),
    "schooling": _of("Fundamental;Médio;Superior;Pós-graduação;Nenhuma"),
    "result": _of("positive;negative;inconclusive;not done"),
    "marital": _of("Never-married;Divorced;Married-civ-spouse;Widowed"),
    "visit no": lambda r, i: str(1 + i % 6),
    "test code": lambda r, i: f"LAB{r.randrange(1, 15):04d}",
    "loinc": lambda r, i: f"{r.choice([2345, 718, 4548, 2160, 1742, 777])}-{r.randrange(1, 9)}",
    "percent": lambda r, i: f"{r.randrange(0, 101)}%",
    "interval": lambda r, i: r.choice(["[20..29]", "[30..39]", "[40..59]"]),
    "star": lambda r, i: "*",
    "cid text": _of("Heart Failure;Type 2 Diabetes;Asthma;Essential Hypertension;Chronic Kidney Disease"),
    "pressure": lambda r, i: f"{r.randrange(90, 180)}/{r.randrange(50, 110)}",
    "gene": _of("BRCA1;TP53;EGFR;KRAS;MYC;PTEN"),
    "dose": lambda r, i: f"{r.choice([5, 10, 20, 500])} mg",
    "size": lambda r, i: f"{r.randrange(1, 40)}x{r.randrange(1, 40)}",
    "route": _of("oral;intravenosa;subcutânea;tópica"),
}


@dataclass(frozen=True)
class Labelled:
    """One column: what it identifies by ("none": nothing), its header, how its values are made, rows a person."""

    language: str
    kind: str
    header: str
    maker: str
    repeat: int

    def cells(self) -> list[str]:
        """600 rows; a person's rows repeat the person's value. Harmless values are drawn for every row."""
        drawn = random.Random(f"{self.header}/{self.maker}/{self.repeat}")
        people = max(ROWS // self.repeat, 8)
        values = [MAKERS[self.maker](drawn, i) for i in range(people)]
        return [values[i % people] for i in range(ROWS)]


def read_lines(text: str) -> tuple[Labelled, ...]:
    """The columns of a part: a line holds language, kind, headers, maker and rows a person."""
    out = []
    for line in text.strip().splitlines():
        language, kind, headers, maker, repeats = (part.strip() for part in line.split("|"))
        out += [
            Labelled(language, kind, h, maker, int(n)) for h in headers.split(";") for n in repeats.split()
        ]
    return tuple(out)


TUNED = read_lines(
    """
    - | cpf | v1;campo7 | cpf | 1 12
    - | cpf | x | cpf digits | 1 40
    - | cpf | v2 | cpf number | 1 12
    pt | cpf | cpf_pac | letters | 1
    - | cns | col_a | cns | 1 12
    pt | cns | cartao_sus | long number | 40
    - | rg | dado | rg | 1 12
    - | ssn | v3 | ssn | 1 12
    - | document | x9 | dni | 1 12
    - | account | v4 | iban | 1 12
    - | card | c12 | card | 1 12
    - | card | c13 | card blanks | 12
    - | email | info | email | 1 40
    - | phone | info2 | phone br | 1 12
    - | phone | v5 | phone br digits | 1 12
    - | phone | v6 | phone us | 1 12
    - | phone | v7 | phone es | 12
    - | phone | v8 | phone + | 12
    - | url | v9 | url | 1 12
    - | ip | v10 | ipv4 | 1 12
    - | mac | v11 | mac | 12
    - | uuid | v12 | uuid | 1 12
    - | plate | v13 | plate | 1 12
    - | plate | v14 | plate mercosul | 1 12
    - | coordinates | v15 | point | 1 12
    en | coordinates | lat;longitude | degrees | 1 12
    - | name | v16;campo | full | 1 12 40
    - | name | v17 | full caps | 12
    - | name | v18 | full lower | 12
    - | name | v19 | full turned | 12
    - | name | v20 | given | 12
    - | name | v21 | rare | 1
    - | name | v22 | mixed names | 12
    pt | name | nome_paciente;nm_pac | rare | 1 12 60
    en | name | patient_name;surname | rare caps | 12
    es | name | apellidos | rare | 40
    pt | name | medico | doctor | 40
    - | address | v23 | street | 1 12
    - | address | v24 | street en | 12
    pt | address | end_res | letters | 12
    - | record | v25 | pseudonym | 1 12
    en | record | patient_id;subject | person code | 1 12 60
    en | record | id;mrn | person number | 1 12 60
    pt | record | prontuario;matric | long number | 1 12 60
    en | record | visit_id | long number | 1
    en | device | device_id;serial_number | serial | 1 40
    en | member | member_id;insurance_number | long number | 12
    - | photo | v26 | file | 1
    pt | free text | observacao | note | 1
    - | email | situacao2 | tail note | 1
    - | phone | obs2 | tail phone | 1
    - | name | quem_trouxe | tail names | 1
    en | none | lab_01;hemoglobin;glucose | decimal | 1
    pt | none | creatinina | decimal 4 | 1
    pt | none | idade | age | 1
    en | none | q1;pain | scale | 1
    en | none | smoker;student;email;photo | yes | 1
    pt | none | telefone;fumante | sim | 1
    en | none | credit_card;diabetes | 01 | 1
    pt | none | cid10;diag_princ | icd | 1
    en | none | icd_code | icd full | 1
    pt | none | cep | cep | 1
    en | none | zip | zip | 1
    en | none | zip_code | zip4 | 1
    en | none | visit_date;registered | date | 1
    pt | none | dt_internacao;data_registro | date br | 1
    pt | none | dt_obito | date digits | 1
    en | none | birth_year;year | year | 1
    pt | none | hora_entrada | time | 1
    en | none | read_at;record_date | stamp | 1
    en | none | visits;children | count | 1
    pt | none | custo_reais | money | 1
    pt | none | valor_total | money comma | 1
    en | none | revenue | big money | 1
    pt | none | cod_munic;municipio | town code | 1
    pt | none | cnes | unit code | 1
    pt | none | procedimento;cod_procedimento | procedure code | 1
    en | none | drug_code | drug code | 1
    pt | none | municipio;cidade | town | 1
    en | none | city | town en | 1
    pt | none | nome_hospital;hospital | clinic | 1
    en | none | drug_name;drug | drug | 1
    pt | none | cor | colour | 1
    en | none | month | month | 1
    pt | none | dia_semana | weekday | 1
    en | none | occupation | job | 1
    en | none | native_country;country | country | 1
    en | none | ward;department | ward | 1
    en | none | blood_type | blood | 1
    en | none | q7_answer | likert | 1
    pt | none | escolaridade | schooling | 1
    en | none | result;test_result | result | 1
    en | none | marital_status | marital | 1
    en | none | latitude;longitude | degrees coarse | 1
    en | none | name;address;patient_id | star | 1
    en | none | age | interval | 1
    en | none | test_code | test code | 1
    """
)
HELD_BACK = read_lines(
    """
    - | cpf | f1 | cpf digits | 12
    - | cpf | f2 | tail cpf | 1
    pt | cpf | cpfPaciente | person number | 60
    - | cns | f3 | cns | 40
    - | rg | f4 | rg mg | 1 12
    - | ssn | f5 | ssn | 40
    - | document | f6 | dni | 40
    - | account | f7 | iban blanks | 1 12
    - | card | f8 | card blanks | 1 40
    - | email | f9 | email | 12 60
    - | phone | f10 | phone br plain | 1 12
    - | phone | f11 | phone us digits | 1 12
    - | phone | f12 | phone es | 1
    - | phone | f13 | phone + | 1 40
    - | phone | f14 | phone br digits | 40
    - | url | f15 | handle | 1 12
    - | ip | f16 | ipv6 | 1 12
    - | mac | f17 | mac | 1
    - | record | f18 | hash | 1 12
    - | plate | f19 | plate es | 1 12
    - | plate | f20 | plate | 40
    - | coordinates | f21 | point | 40
    pt | coordinates | latitude;lng | degrees | 40
    - | name | f22 | full | 60
    - | name | f23 | full caps | 1 40
    - | name | f24 | full turned | 1
    - | name | f25 | initial | 1
    - | name | f26 | doctor | 1 12
    - | name | f27 | given | 1 40
    - | name | f28 | family | 12
    - | name | f29 | rare | 12
    - | name | f30 | rare caps | 1
    - | name | f31 | mixed names | 1 40
    en | name | customer;client | rare | 12
    pt | name | nome;responsavel | rare | 12
    es | name | nombre;paciente | rare caps | 1 40
    - | address | f32 | street es | 1 12
    en | address | home_address | letters | 60
    - | record | f33 | pseudonym | 40
    en | record | participant;person_id;student_no | person code | 12
    pt | record | cod_cliente;id_pessoa;registro | person number | 12
    es | record | nhc;id_paciente | long number | 12
    en | record | encounter_id;claim_no | long number | 1
    pt | device | nr_serie | serial | 12
    pt | member | carteirinha | long number | 12
    en | photo | selfie | file | 1
    en | ip | client_ip | letters | 40
    en | free text | notes;comments | note | 1
    - | phone | status_obs | tail phone | 1
    - | name | acompanhante_tipo | tail names | 1
    en | none | sodium;bilirubin | decimal | 1
    es | none | glucosa;colesterol | decimal 4 | 1
    es | none | edad | age | 1
    pt | none | q2;escala_dor | scale | 1
    en | none | phone_service;has_card;signature | yes | 1
    pt | none | gestante;assinatura;paciente_novo | sim | 1
    pt | none | cartao;obito | 01 | 1
    pt | none | causa_basica;cid_secundario | icd full | 1
    es | none | fecha_alta;ingreso | date | 1
    es | none | fecha | date br | 1
    en | none | admission_day | date digits | 1
    pt | none | ano | year | 1
    en | none | started | time | 1
    pt | none | momento | stamp | 1
    pt | none | num_consultas;qtd_filhos | count | 1
    en | none | charges;price | money | 1
    en | none | assets | big money | 1
    pt | none | codmunres | town code | 1
    pt | none | estabelecimento | unit code | 1
    pt | none | proc_rea | procedure code | 1
    en | none | atc | drug code | 1
    pt | none | local_ocorrencia;nome_municipio | town | 1
    en | none | town | town en | 1
    pt | none | unidade_saude | clinic | 1
    pt | none | medicamento;nome_medicamento | drug | 1
    es | none | color | colour | 1
    en | none | period | month | 1
    es | none | turno | weekday | 1
    en | none | job_title;role | job | 1
    es | none | pais;nacionalidad | country | 1
    pt | none | setor;enfermaria | ward | 1
    pt | none | tipo_sanguineo | blood | 1
    en | none | satisfaction | likert | 1
    pt | none | instrucao | schooling | 1
    pt | none | resultado | result | 1
    en | none | visit_number | visit no | 1
    en | none | analyte | test code | 1
    en | none | loinc | loinc | 1
    en | none | saturation | percent | 1
    en | none | diagnosis_text;condition | cid text | 1
    en | none | blood_pressure | pressure | 1
    en | none | gene | gene | 1
    pt | none | dose;posologia | dose | 1
    en | none | tumour_size | size | 1
    pt | none | via | route | 1
    pt | none | nome;cpf;telefone | star | 1
    en | none | income | interval | 1
    """
)
