"""A steward who accepts what inspect proposes publishes no name, number, address or contact, however often it repeats."""

import random
from typing import Any

import polars as pl
import pytest

from velado.data.inspect import inspect

FIRST, LAST = (
    line.split()
    for line in (
        "Ana Bia Caio Davi Elza Hugo Iara Jonas Lara Nina Otto Paulo Rita Saulo Vera João Íris Mary Juan Kofi Mei",
        "Silva Gomes Souza Lima Rocha Dias Prado Nunes Smith Brown López Adeyemi Tanaka Araújo Kowalski",
    )
)


def person(r: random.Random, i: int) -> dict[str, Any]:
    def digits(n: int) -> str:
        return "".join(r.choice("0123456789") for _ in range(n))

    name = f"{r.choice(FIRST)} {r.choice(LAST)} {r.choice(LAST)}"
    return {
        "member_no": f"M{i:05d}",
        "holder": name,
        "nm_mae": f"{r.choice(FIRST)} {r.choice(LAST)}",
        "calledBy": name.split()[0],
        "home_addr": f"{r.randrange(1, 900)} {r.choice(LAST)} Road",
        "end_res": f"Travessa {r.choice(LAST)} {r.randrange(9)}",
        "cartaosus": "7" + digits(14),
        "insurance card": digits(10),
        "num_doc": digits(7),
        "placa": f"{r.choice('ABC')}XY-{digits(4)}",
        "last_ip": f"10.0.{i % 256}.{r.randrange(256)}",
        "lat": f"{r.uniform(-30, 0):.5f}",
        "lon": f"{r.uniform(-60, -40):.5f}",
        "correio_eletronico": f"u{i}@mail.org",
        "ddd_fone": f"{r.choice([11, 21])} 3{digits(3)}-{digits(4)}",
        "aparelho_nr_serie": digits(6),
        "x1": f"{r.choice(FIRST).upper()} {r.choice(LAST).upper()}",
        "x2": f"{digits(3)}.{digits(3)}.{digits(3)}-{digits(2)}",
        "x3": "".join(r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(16)),
        "x4": f"+55 11 9{digits(4)} {digits(4)}",
        "assinatura": f"s{i}.png",
    }


OPEN = {"age": 90, "sex": 2, "kt_v": 200, "weight": 120, "ward": 4, "stay": 30, "glucose": 300, "q1": 5}


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, 2, 12, 60])
def test_no_identifying_column_is_proposed_for_publishing(each: int) -> None:
    r = random.Random(each)
    everyone = [person(r, i) for i in range(600 // each)]
    rows = [
        everyone[i % len(everyone)] | {k: str(r.randrange(n)) for k, n in OPEN.items()} for i in range(600)
    ]
    found = inspect(pl.DataFrame(rows))
    published = {name for name, column in found.schema.columns.items() if column.published}
    assert published == set(OPEN)
    assert found.person in {"member_no", "cartaosus", "x2"}
    assert found.rows_per_person == pytest.approx(each, rel=0.05)
