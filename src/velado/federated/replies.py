"""What a reply must be to count: readable, and with counts and scores that can be true. Whoever sends another is missing.

A client's numbers cannot be recomputed at the server. What can be known is that rows are whole and as many as were said
when the client was greeted, and that scores lie where scores can lie; nothing else may enter a sum or a mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from velado.federated.packet import Packet
from velado.federated.records import ClientRecord

OTHER_ROWS = "it has other rows than when it was greeted"
OTHER_CLIENT = "it says that it is another client"
PORTUGUESE = {
    "its answer cannot be read": "a sua resposta não pode ser lida",
    OTHER_ROWS: "tem outras linhas do que quando foi chamado",
    OTHER_CLIENT: "diz ser outro cliente",
    "its rows are not whole numbers, or none": "as suas linhas não são números inteiros, ou nenhuma",
    "its number of classes is not a whole number": "o seu número de classes não é inteiro",
    "it scored other rows than it holds out": "avaliou outras linhas do que as que separou",
    "its class counts do not add up": "as suas contagens por classe não fecham",
    "its scores are out of range": "as suas notas estão fora do possível",
    "A second machine says that it is ": "Uma segunda máquina diz ser o ",
    "clients that sit out": "clientes que ficam de fora",
    "No AUC: the held-out rows hold a single class.": "Sem AUC: as linhas separadas têm uma só classe.",
    "No AUC: no client that scored holds out rows of two classes.": "Sem AUC: nenhum cliente que avaliou separou "
    "linhas de duas classes.",
}
"""What a round's record says of replies and who sent them, as a report in Portuguese says it."""
_MOST_ROWS = 10**12
# -ln of the least probability that a score is computed with is below 35.
_WORST_LOSS = 100.0


def whole(packet: Packet, name: str, least: int, most: int = _MOST_ROWS) -> int | None:
    """A fact that is a whole number from *least* to *most*; None for anything else, also where it is not there."""
    value = packet.facts.get(name)
    fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    return int(value) if fits and value is not None else None


def greeting_fault(packet: Packet) -> str:
    """Why what a client says of itself cannot be true, or nothing."""
    least = 0 if packet.text("sits_out") else 1
    if whole(packet, "rows", least) is None or whole(packet, "test_rows", 0) is None:
        return "its rows are not whole numbers, or none"
    if "classes" in packet.facts and whole(packet, "classes", 0) is None:
        return "its number of classes is not a whole number"
    return ""


def round_fault(packet: Packet, greeted: ClientRecord | None, classes: int) -> str:
    """Why an answer to a round does not count, or nothing. One that says itself what is wrong is left as it is."""
    if packet.text("error") or packet.text("sits_out"):
        return ""
    if fault := greeting_fault(packet):
        return fault
    if greeted is not None and packet.facts["rows"] != greeted.rows:
        return OTHER_ROWS
    return _score_fault(packet, greeted, classes) if "scored" in packet.facts else ""


def _score_fault(packet: Packet, greeted: ClientRecord | None, classes: int) -> str:
    scored = whole(packet, "scored", 0)
    if scored is None or (greeted is not None and scored != greeted.test_rows):
        return "it scored other rows than it holds out"
    if not counts_fit(packet.arrays.get("test_classes"), classes, scored):
        return "its class counts do not add up"
    if scored == 0:
        return ""
    loss, area = _finite(packet, "loss_sum"), _finite(packet, "auc")
    if whole(packet, "right", 0, scored) is None or loss is None or not 0 <= loss <= _WORST_LOSS * scored:
        return "its scores are out of range"
    if "auc" in packet.facts and (area is None or not 0 <= area <= 1):
        return "its scores are out of range"
    return ""


def counts_fit(counts: npt.NDArray[Any] | None, classes: int, total: int) -> bool:
    """Whether *counts* are whole, none below 0, one for each class, and *total* together."""
    if counts is None or counts.shape != (classes,) or counts.dtype.kind not in "iu":
        return False
    # Each is held against the total before they are summed: a sum of huge ones would wrap around.
    return bool((counts >= 0).all() and (counts <= total).all() and int(counts.sum()) == total)


def share(packet: Packet, name: str) -> float | None:
    """A fact that is a share from 0 to 1; None for anything else."""
    value = _finite(packet, name)
    return value if value is not None and 0 <= value <= 1 else None


def _finite(packet: Packet, name: str) -> float | None:
    value = packet.number(name, np.inf)
    return value if np.isfinite(value) else None
