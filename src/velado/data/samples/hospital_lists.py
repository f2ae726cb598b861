"""The lists that `make_hospital` draws from: names, places, diagnoses and their rough frequencies.

The frequencies are rounded by hand so that the table looks like a hospital's; they are not statistics and
must not be quoted as such. Municipalities, states and ICD-10 (CID-10) categories are real, people are not.
"""

from typing import NamedTuple


class Place(NamedTuple):
    """A municipality, how often it is drawn, and the first and last five-digit CEP prefix it is given."""

    name: str
    state: str
    weight: float
    first_prefix: int
    last_prefix: int


class Diagnosis(NamedTuple):
    """An ICD-10 category: who gets it (weights by sex; youngest, typical, oldest age) and what it costs.

    `days` is the median stay, `day_cost` the cost of a day in reais, `fatality` the share who die at the age
    of 60. `once` marks what does not bring the same patient back within two years.
    """

    code: str
    women: float
    men: float
    ages: tuple[int, int, int]
    days: float
    day_cost: float
    fatality: float
    once: bool = False


# The five-digit prefixes stay inside each municipality's own range, so the first digits tell the state.
PLACES = (
    Place("Viçosa", "MG", 40, 36570, 36579),
    Place("Juiz de Fora", "MG", 26, 36000, 36119),
    Place("Belo Horizonte", "MG", 24, 30000, 31999),
    Place("Ubá", "MG", 12, 36500, 36519),
    Place("Ponte Nova", "MG", 12, 35430, 35439),
    Place("Muriaé", "MG", 7, 36880, 36889),
    Place("Ouro Preto", "MG", 6, 35400, 35409),
    Place("Uberlândia", "MG", 6, 38400, 38419),
    Place("Governador Valadares", "MG", 5, 35000, 35109),
    Place("Montes Claros", "MG", 5, 39400, 39419),
    Place("São Paulo", "SP", 30, 1000, 5999),
    Place("Campinas", "SP", 10, 13000, 13149),
    Place("Ribeirão Preto", "SP", 8, 14000, 14114),
    Place("São José dos Campos", "SP", 5, 12200, 12249),
    Place("Sorocaba", "SP", 4, 18000, 18109),
    Place("Santos", "SP", 4, 11000, 11099),
    Place("Botucatu", "SP", 2, 18600, 18619),
    Place("Rio de Janeiro", "RJ", 22, 20000, 23799),
    Place("Niterói", "RJ", 6, 24000, 24399),
    Place("Petrópolis", "RJ", 4, 25600, 25779),
    Place("Campos dos Goytacazes", "RJ", 4, 28000, 28149),
    Place("Vitória", "ES", 6, 29000, 29099),
    Place("Cachoeiro de Itapemirim", "ES", 3, 29300, 29329),
    Place("Salvador", "BA", 14, 40000, 42499),
    Place("Feira de Santana", "BA", 5, 44000, 44149),
    Place("Vitória da Conquista", "BA", 3, 45000, 45119),
    Place("Aracaju", "SE", 3, 49000, 49098),
    Place("Recife", "PE", 11, 50000, 52999),
    Place("Caruaru", "PE", 3, 55000, 55119),
    Place("Petrolina", "PE", 2, 56300, 56354),
    Place("Maceió", "AL", 4, 57000, 57099),
    Place("João Pessoa", "PB", 4, 58000, 58099),
    Place("Campina Grande", "PB", 3, 58400, 58449),
    Place("Natal", "RN", 4, 59000, 59139),
    Place("Mossoró", "RN", 2, 59600, 59649),
    Place("Fortaleza", "CE", 12, 60000, 61599),
    Place("Sobral", "CE", 3, 62000, 62119),
    Place("Juazeiro do Norte", "CE", 2, 63000, 63059),
    Place("Teresina", "PI", 4, 64000, 64099),
    Place("São Luís", "MA", 4, 65000, 65109),
    Place("Belém", "PA", 7, 66000, 66999),
    Place("Santarém", "PA", 2, 68000, 68119),
    Place("Macapá", "AP", 2, 68900, 68914),
    Place("Manaus", "AM", 8, 69000, 69099),
    Place("Boa Vista", "RR", 2, 69300, 69339),
    Place("Rio Branco", "AC", 2, 69900, 69924),
    Place("Porto Velho", "RO", 3, 76800, 76834),
    Place("Palmas", "TO", 2, 77000, 77270),
    Place("Brasília", "DF", 11, 70000, 72799),
    Place("Goiânia", "GO", 7, 74000, 74899),
    Place("Anápolis", "GO", 2, 75000, 75159),
    Place("Cuiabá", "MT", 3, 78000, 78109),
    Place("Campo Grande", "MS", 4, 79000, 79124),
    Place("Dourados", "MS", 2, 79800, 79849),
    Place("Curitiba", "PR", 10, 80000, 82999),
    Place("Londrina", "PR", 4, 86000, 86129),
    Place("Maringá", "PR", 3, 87000, 87109),
    Place("Florianópolis", "SC", 5, 88000, 88099),
    Place("Joinville", "SC", 4, 89200, 89239),
    Place("Blumenau", "SC", 3, 89000, 89099),
    Place("Porto Alegre", "RS", 9, 90000, 91999),
    Place("Caxias do Sul", "RS", 3, 95000, 95124),
    Place("Santa Maria", "RS", 3, 97000, 97119),
    Place("Pelotas", "RS", 2, 96000, 96099),
)

# The abbreviation stands in the state's label because "São Paulo" alone would also be a municipality.
STATES = {
    "AC": ("Acre (AC)", "Norte"),
    "AL": ("Alagoas (AL)", "Nordeste"),
    "AM": ("Amazonas (AM)", "Norte"),
    "AP": ("Amapá (AP)", "Norte"),
    "BA": ("Bahia (BA)", "Nordeste"),
    "CE": ("Ceará (CE)", "Nordeste"),
    "DF": ("Distrito Federal (DF)", "Centro-Oeste"),
    "ES": ("Espírito Santo (ES)", "Sudeste"),
    "GO": ("Goiás (GO)", "Centro-Oeste"),
    "MA": ("Maranhão (MA)", "Nordeste"),
    "MG": ("Minas Gerais (MG)", "Sudeste"),
    "MS": ("Mato Grosso do Sul (MS)", "Centro-Oeste"),
    "MT": ("Mato Grosso (MT)", "Centro-Oeste"),
    "PA": ("Pará (PA)", "Norte"),
    "PB": ("Paraíba (PB)", "Nordeste"),
    "PE": ("Pernambuco (PE)", "Nordeste"),
    "PI": ("Piauí (PI)", "Nordeste"),
    "PR": ("Paraná (PR)", "Sul"),
    "RJ": ("Rio de Janeiro (RJ)", "Sudeste"),
    "RN": ("Rio Grande do Norte (RN)", "Nordeste"),
    "RO": ("Rondônia (RO)", "Norte"),
    "RR": ("Roraima (RR)", "Norte"),
    "RS": ("Rio Grande do Sul (RS)", "Sul"),
    "SC": ("Santa Catarina (SC)", "Sul"),
    "SE": ("Sergipe (SE)", "Nordeste"),
    "SP": ("São Paulo (SP)", "Sudeste"),
    "TO": ("Tocantins (TO)", "Norte"),
}

RACES = ("branca", "preta", "parda", "amarela", "indígena")
RACE_WEIGHTS = {
    "Norte": (21, 9, 67, 0.3, 3),
    "Nordeste": (27, 13, 59, 0.2, 0.8),
    "Sudeste": (50, 11, 38, 0.8, 0.2),
    "Sul": (72, 5, 22, 0.5, 0.5),
    "Centro-Oeste": (37, 9, 52, 0.5, 1.5),
}
RACE_LEVELS = {
    "branca": "branca ou amarela",
    "preta": "negra ou indígena",
    "parda": "negra ou indígena",
    "amarela": "branca ou amarela",
    "indígena": "negra ou indígena",
}

MARITAL_LEVELS = {
    "solteiro(a)": "sem companheiro(a)",
    "casado(a)": "com companheiro(a)",
    "união estável": "com companheiro(a)",
    "separado(a)": "sem companheiro(a)",
    "divorciado(a)": "sem companheiro(a)",
    "viúvo(a)": "sem companheiro(a)",
}
# Each row of weights, in the order of MARITAL_LEVELS, holds from the age before it on.
MARITAL_WEIGHTS = (
    (0, (100, 0, 0, 0, 0, 0)),
    (18, (68, 13, 16, 1, 1.5, 0.5)),
    (30, (32, 40, 17, 3, 7, 1)),
    (45, (17, 51, 9, 4, 13, 6)),
    (65, (9, 48, 4, 2, 9, 28)),
)

SCHOOLING_LEVELS = {
    "sem instrução": ("menos que fundamental", "até fundamental"),
    "fundamental incompleto": ("menos que fundamental", "até fundamental"),
    "fundamental completo": ("fundamental", "até fundamental"),
    "médio incompleto": ("fundamental", "até fundamental"),
    "médio completo": ("médio", "médio ou superior"),
    "superior incompleto": ("médio", "médio ou superior"),
    "superior completo": ("superior", "médio ou superior"),
    "pós-graduação": ("superior", "médio ou superior"),
}
# Each row of weights, in the order of SCHOOLING_LEVELS, holds from the age before it on.
SCHOOLING_WEIGHTS = (
    (0, (100, 0, 0, 0, 0, 0, 0, 0)),
    (6, (3, 97, 0, 0, 0, 0, 0, 0)),
    (15, (1, 22, 17, 60, 0, 0, 0, 0)),
    (18, (1, 8, 8, 16, 39, 18, 9, 1)),
    (30, (3, 20, 10, 6, 35, 5, 16, 5)),
    (60, (14, 43, 10, 3, 17, 2, 9, 2)),
)

# The share of patients between one age and the next; deliveries raise the women's share between 18 and 35.
AGE_EDGES = (0, 1, 5, 15, 20, 25, 30, 35, 45, 55, 65, 75, 85, 98)
AGE_WEIGHTS = {
    "F": (5, 4, 4, 6, 10, 10, 8, 10, 8, 10, 11, 9, 4),
    "M": (6, 5, 5, 3, 4, 4, 4, 9, 13, 15, 15, 11, 4),
}

# The first and the last letter-and-digits of each chapter, and its label.
CHAPTERS = (
    ("A00", "B99", "I Doenças infecciosas e parasitárias (A00-B99)"),
    ("C00", "D48", "II Neoplasias (C00-D48)"),
    ("D50", "D89", "III Sangue e imunidade (D50-D89)"),
    ("E00", "E90", "IV Endócrinas, nutricionais e metabólicas (E00-E90)"),
    ("F00", "F99", "V Transtornos mentais (F00-F99)"),
    ("G00", "G99", "VI Sistema nervoso (G00-G99)"),
    ("H00", "H59", "VII Olho (H00-H59)"),
    ("H60", "H95", "VIII Ouvido (H60-H95)"),
    ("I00", "I99", "IX Aparelho circulatório (I00-I99)"),
    ("J00", "J99", "X Aparelho respiratório (J00-J99)"),
    ("K00", "K93", "XI Aparelho digestivo (K00-K93)"),
    ("L00", "L99", "XII Pele (L00-L99)"),
    ("M00", "M99", "XIII Osteomuscular (M00-M99)"),
    ("N00", "N99", "XIV Geniturinário (N00-N99)"),
    ("O00", "O99", "XV Gravidez, parto e puerpério (O00-O99)"),
    ("P00", "P96", "XVI Período perinatal (P00-P96)"),
    ("Q00", "Q99", "XVII Malformações congênitas (Q00-Q99)"),
    ("R00", "R99", "XVIII Sintomas e sinais (R00-R99)"),
    ("S00", "T98", "XIX Lesões e envenenamentos (S00-T98)"),
    ("U00", "U99", "XXII Códigos especiais (U00-U99)"),
    ("Z00", "Z99", "XXI Contatos com serviços de saúde (Z00-Z99)"),
)

DIAGNOSES = (
    Diagnosis("A09", 4, 4, (0, 2, 99), 3, 380, 0.005),
    Diagnosis("A15", 1, 2.5, (15, 40, 90), 12, 420, 0.05),
    Diagnosis("A41", 5, 5, (0, 78, 99), 11, 1500, 0.33),
    Diagnosis("A46", 1.5, 1.5, (20, 65, 95), 6, 400, 0.01),
    Diagnosis("A90", 4, 4, (2, 28, 90), 4, 390, 0.005),
    Diagnosis("B20", 0.8, 1.8, (18, 40, 75), 12, 700, 0.10),
    Diagnosis("C16", 1.2, 2.2, (35, 66, 92), 8, 1300, 0.14),
    Diagnosis("C18", 2.5, 2.5, (35, 68, 95), 8, 1350, 0.10),
    Diagnosis("C34", 1.5, 2.2, (40, 68, 90), 8, 1250, 0.22),
    Diagnosis("C50", 6, 0.03, (28, 56, 92), 4, 1400, 0.05),
    Diagnosis("C53", 2.5, 0, (25, 48, 85), 5, 1200, 0.07),
    Diagnosis("C61", 0, 6, (48, 70, 95), 4, 1350, 0.05),
    Diagnosis("C91", 0.8, 1, (1, 6, 70), 12, 1700, 0.07),
    Diagnosis("D25", 3.5, 0, (28, 44, 56), 3, 900, 0.001, once=True),
    Diagnosis("D50", 1.2, 0.7, (1, 40, 95), 4, 420, 0.01),
    Diagnosis("D57", 0.8, 0.8, (1, 18, 50), 6, 560, 0.02),
    Diagnosis("E10", 0.8, 0.8, (3, 16, 45), 5, 520, 0.01),
    Diagnosis("E11", 6, 6, (30, 64, 97), 6, 560, 0.04),
    Diagnosis("E66", 1.5, 0.5, (18, 38, 65), 3, 1900, 0.003, once=True),
    Diagnosis("E86", 1, 1, (0, 1, 99), 3, 350, 0.02),
    Diagnosis("F10", 0.5, 3, (18, 45, 75), 12, 260, 0.01),
    Diagnosis("F20", 1.3, 1.8, (16, 32, 75), 20, 240, 0.002),
    Diagnosis("F31", 1.2, 0.7, (16, 36, 75), 15, 240, 0.002),
    Diagnosis("F32", 1.4, 0.6, (13, 30, 80), 10, 240, 0.003),
    Diagnosis("G40", 1.2, 1.4, (0, 8, 90), 4, 480, 0.01),
    Diagnosis("G45", 1.2, 1.2, (40, 72, 97), 3, 620, 0.01),
    Diagnosis("H26", 2, 1.6, (45, 72, 97), 0.6, 1500, 0.0003),
    Diagnosis("H66", 0.6, 0.6, (0, 3, 60), 2, 380, 0.0005),
    Diagnosis("I10", 3.5, 3, (25, 66, 99), 3, 420, 0.01),
    Diagnosis("I20", 3, 4.5, (35, 63, 95), 4, 1500, 0.02),
    Diagnosis("I21", 3, 5.5, (32, 64, 97), 7, 2200, 0.11),
    Diagnosis("I48", 1.4, 1.4, (40, 74, 97), 4, 980, 0.03),
    Diagnosis("I50", 6, 6, (35, 76, 99), 8, 820, 0.10),
    Diagnosis("I63", 3.5, 4, (35, 73, 99), 9, 1050, 0.12),
    Diagnosis("I83", 2, 0.6, (28, 50, 78), 1, 950, 0.0003, once=True),
    Diagnosis("J15", 3, 3, (0, 78, 99), 7, 620, 0.09),
    Diagnosis("J18", 8, 8, (0, 76, 99), 6, 560, 0.08),
    Diagnosis("J21", 8, 9, (0, 0, 3), 5, 520, 0.003),
    Diagnosis("J35", 4, 4, (2, 6, 25), 1, 700, 0.0002, once=True),
    Diagnosis("J44", 3, 4, (42, 72, 97), 7, 560, 0.07),
    Diagnosis("J45", 3, 3, (1, 5, 80), 3, 400, 0.003),
    Diagnosis("K29", 1, 1, (15, 45, 95), 3, 400, 0.01),
    Diagnosis("K35", 4, 5, (4, 18, 75), 3, 900, 0.003, once=True),
    Diagnosis("K40", 1, 6, (0, 58, 92), 1, 850, 0.002, once=True),
    Diagnosis("K70", 0.6, 2.6, (30, 54, 82), 8, 640, 0.15),
    Diagnosis("K80", 7, 3, (18, 48, 92), 3, 950, 0.006, once=True),
    Diagnosis("K92", 1.5, 2, (25, 68, 97), 6, 760, 0.09),
    Diagnosis("L03", 2.2, 2.6, (0, 55, 97), 6, 400, 0.01),
    Diagnosis("L89", 0.8, 0.8, (50, 84, 99), 14, 480, 0.12),
    Diagnosis("M16", 1.2, 1.1, (45, 68, 90), 5, 2100, 0.004, once=True),
    Diagnosis("M32", 1, 0.1, (14, 32, 65), 8, 720, 0.02),
    Diagnosis("M54", 1.2, 1.2, (25, 48, 85), 3, 520, 0.0005),
    Diagnosis("N17", 1.5, 1.8, (15, 74, 99), 9, 1050, 0.17),
    Diagnosis("N18", 3, 3.6, (18, 62, 95), 8, 980, 0.10),
    Diagnosis("N20", 3, 3.2, (18, 42, 80), 2, 780, 0.001),
    Diagnosis("N39", 5, 3, (0, 76, 99), 5, 420, 0.03),
    Diagnosis("N40", 0, 3.5, (50, 70, 95), 3, 900, 0.004, once=True),
    Diagnosis("N80", 1.8, 0, (22, 36, 50), 2, 950, 0.0002),
    Diagnosis("O03", 8, 0, (14, 29, 46), 1, 600, 0.0003, once=True),
    Diagnosis("O14", 7, 0, (14, 30, 46), 5, 780, 0.003, once=True),
    Diagnosis("O24", 5, 0, (18, 34, 46), 4, 620, 0.0005, once=True),
    Diagnosis("O80", 48, 0, (13, 25, 46), 2, 640, 0.0002, once=True),
    Diagnosis("O82", 32, 0, (14, 31, 46), 3, 820, 0.0004, once=True),
    Diagnosis("P07", 22, 22, (0, 0, 0), 24, 1350, 0.07, once=True),
    Diagnosis("P22", 14, 14, (0, 0, 0), 10, 1250, 0.06, once=True),
    Diagnosis("P59", 11, 11, (0, 0, 0), 3, 480, 0.0005, once=True),
    Diagnosis("Q21", 2.5, 2.5, (0, 0, 20), 12, 2400, 0.05),
    Diagnosis("R10", 2, 1.6, (4, 30, 90), 2, 420, 0.005),
    Diagnosis("S06", 1.6, 4.5, (0, 28, 95), 7, 1400, 0.10),
    Diagnosis("S52", 2, 3.6, (3, 14, 85), 2, 850, 0.0005, once=True),
    Diagnosis("S72", 4, 2.6, (10, 82, 99), 9, 1250, 0.06, once=True),
    Diagnosis("S82", 2, 5.5, (10, 33, 85), 5, 950, 0.002, once=True),
    Diagnosis("T78", 0.8, 0.8, (1, 20, 80), 1, 380, 0.001),
    Diagnosis("U07", 2.2, 2.6, (0, 74, 99), 8, 1300, 0.14),
    Diagnosis("Z51", 3, 3, (20, 62, 90), 1, 1100, 0.02),
)

# Names stand, parted by blanks, from the more to the less frequent; the earlier ones are drawn more often.
GIVEN_NAMES = {
    "F": """
        Maria Ana Francisca Antônia Adriana Juliana Márcia Fernanda Patrícia Aline Sandra Camila
        Amanda Bruna Jéssica Letícia Júlia Luciana Vanessa Mariana Gabriela Vera Vitória Larissa
        Cláudia Beatriz Rita Luana Sônia Renata Eliane Josefa Simone Natália Cristiane Carla Débora
        Rosângela Jaqueline Rosa Daniela Aparecida Marlene Terezinha Raimunda Andréia Fabiana Lúcia
        Raquel Ângela Rafaela Joana Luzia Elaine Alice Helena Laura Sofia Cecília Lívia Heloísa
        Isabela Conceição Inês Lorena Thaís Ester Iara
    """,
    "M": """
        José João Antônio Francisco Carlos Paulo Pedro Lucas Luiz Marcos Luís Gabriel Rafael Daniel
        Marcelo Bruno Eduardo Felipe Raimundo Rodrigo Manoel Mateus André Fernando Fábio Leonardo
        Gustavo Guilherme Leandro Tiago Anderson Ricardo Márcio Jorge Sebastião Alexandre Roberto
        Edson Diego Vitor Sérgio Cláudio Matheus Thiago Geraldo Adriano Luciano Júlio Renato Alex
        Vinícius Rogério Samuel Ronaldo Mário Flávio Igor Douglas Davi Miguel Heitor Arthur Bernardo
        Joaquim Benedito Otávio Caetano Inácio Ubirajara
    """,
}
SURNAMES = """
    Silva Santos Oliveira Souza Rodrigues Ferreira Alves Pereira Lima Gomes Costa Ribeiro Martins
    Carvalho Almeida Lopes Soares Fernandes Vieira Barbosa Rocha Dias Nascimento Andrade Moreira
    Nunes Marques Machado Mendes Freitas Cardoso Ramos Gonçalves Santana Teixeira Araújo Cavalcante
    Pinto Correia Moura Melo Castro Campos Batista Miranda Monteiro Borges Reis Coelho Assunção
    Magalhães Conceição Guimarães Brandão Falcão Simões Leão Brito Aragão Valadão Peçanha Sá Muniz
    Queiroz Tavares Xavier Yamamoto Nakamura Schmidt Becker Bianchi Rossi Zanetti Kowalski Haddad
    Abreu Siqueira Paiva Fonseca Drummond Lacerda Toledo Bittencourt
"""

# Some of these give a person away, as real notes do. They fit any age and sex because they are drawn for all.
NOTES = (
    "Alergia a dipirona.",
    "Alergia a penicilina, confirmada pela família.",
    "Tia Helena, da prefeitura, acompanha a internação.",
    "Família pede contato pelo telefone do vizinho.",
    "Família recusou hemotransfusão por motivo religioso.",
    "Parente do motorista da ambulância do distrito.",
    "Reinternação prevista; trazer exames anteriores.",
    "Sem acompanhante à noite.",
    "Encaminhamento da UBS do bairro.",
    "Família conhecida na cidade, pede discrição.",
    "Usa cadeira de rodas.",
    "Aguarda vaga em leito de reabilitação.",
)
