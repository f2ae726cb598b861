"""`velado query --paper`: a question answered as in the source, for science. It promises nothing, and says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from velado.apps.cli import show
from velado.apps.cli.show import waiting
from velado.apps.cli.words import say
from velado.errors import QueryRefused


def answer_as_in_the_paper(
    sql: str,
    file: Path,
    schema: Path,
    approach: Mapping[str, object],
    *,
    scale_parameter: float,
    target: str | None,
    seed: int,
    show_unprotected: bool,
    accounted: bool,
    quiet: bool,
    as_json: bool,
    tongue: str,
) -> None:
    """Fit the approach, answer, and print the value, its scale and the promise: none."""
    with waiting(tongue, quiet or as_json):
        from velado.data.io import read_schema, read_table
        from velado.papers.correlated.approaches import APPROACHES
        from velado.papers.correlated.correlated_answer import paper_answer
        from velado.query.session import table_name
        from velado.query.sql import parse
        from velado.query.store import has_ledger
        from velado.randomness import seeded
        from velado.settings import Where, part_of

        declared = read_schema(schema)
        chosen = part_of(APPROACHES, approach, Where("flag"), "approach")
        try:
            result = paper_answer(
                read_table(file, declared),
                parse(sql, declared, table_name(file.name)),
                chosen,
                scale_parameter,
                seeded(seed, "paper"),
                has_ledger=accounted or has_ledger(file),
                target=target,
                show_unprotected=show_unprotected,
            )
        except QueryRefused as error:
            # The library names its argument; whoever is at the shell has a flag.
            fix = error.fix.replace("show_unprotected", "--show-unprotected")
            raise QueryRefused(error.what, error.why, fix) from None
    if as_json:
        show.as_json(result.to_dict())
    elif not quiet:
        head = [say(tongue, key) for key in ("paper_value", "paper_answer", "query_scale")]
        rows = [[name, f"{value:.6g}", f"{result.scales[name]:.6g}"] for name, value in result.values.items()]
        show.table(say(tongue, "paper_title", approach=chosen.name), head, rows)
        show.line(say(tongue, "paper_promise"))
