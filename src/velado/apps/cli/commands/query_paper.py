"""`velado query --paper`: a question answered as in the source, for science. It promises nothing, and says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from velado.apps.cli import show
from velado.apps.cli.waiting import waiting
from velado.apps.cli.words import say
from velado.errors import ParameterError, QueryRefused


def answer_as_in_the_paper(
    sql: str,
    file: Path,
    schema: Path,
    approach: str,
    scale_parameter: float,
    settings: Mapping[str, Any],
    seed: int,
    show_unprotected: bool,
    ledger: str | None,
    quiet: bool,
    as_json: bool,
    tongue: str,
) -> None:
    """Fit the approach, answer, and print the value, its scale and the promise: none."""
    with waiting(tongue, quiet or as_json):
        from velado.data.io import read_schema, read_table
        from velado.query.correlation.answer import paper_answer
        from velado.query.correlation.approaches import approach_named
        from velado.query.one_off import has_ledger
        from velado.query.session_settings import table_name
        from velado.query.sql import parse
        from velado.randomness import seeded

        declared = read_schema(schema)
        kind = approach_named(approach)
        fields = {field: value for field, value in settings.items() if value is not None}
        target = fields.pop("target", None)
        unknown = [field for field in fields if field not in kind.__dataclass_fields__]
        if unknown:
            raise ParameterError(
                f"The approach {approach} does not take --{unknown[0].replace('_', '-')}.",
                "A setting that does nothing would be passed over.",
                "Leave it out, or choose the approach it belongs to.",
            )
        try:
            result = paper_answer(
                read_table(file, declared),
                parse(sql, declared, table_name(file.name)),
                kind(**fields),
                scale_parameter,
                seeded(seed, "paper"),
                has_ledger=ledger is not None or has_ledger(file),
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
        show.table(say(tongue, "paper_title", approach=approach), head, rows)
        show.line(say(tongue, "paper_promise"))
