"""What each guarantee counts, in the languages people read. English is the code's own word."""

from __future__ import annotations

PORTUGUESE = {
    "rows": "linhas",
    "people": "pessoas",
    "distinct values": "valores distintos",
    "effective values": "valores efetivos",
    "people of the population": "pessoas da população",
    "earth mover's distance (or less)": "de distância (ou menos)",
    "of the allowed gain (or less)": "do ganho permitido (ou menos)",
    "likelihood of presence (or more)": "de probabilidade de presença (ou mais)",
    "likelihood of presence (or less)": "de probabilidade de presença (ou menos)",
    "times the rarer values (or less)": "vezes os valores mais raros (ou menos)",
}
GUARANTEES_PORTUGUESE = {
    "k-anonymity": "k-anonimato",
    "l-diversity": "l-diversidade",
    "entropy-l-diversity": "l-diversidade por entropia",
    "recursive-l-diversity": "l-diversidade recursiva",
    "t-closeness": "t-proximidade",
    "beta-likeness": "beta-semelhança",
    "k-map": "k-mapa",
    "delta-presence": "delta-presença",
}


def unit_in(language: str, unit: str) -> str:
    """The unit of a verdict in *language*."""
    return PORTUGUESE.get(unit, unit) if language == "pt" else unit


def guarantee_in(language: str, name: str) -> str:
    """The name of a guarantee in *language*."""
    return GUARANTEES_PORTUGUESE.get(name, name) if language == "pt" else name
