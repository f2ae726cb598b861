"""`velado running`: a total over all deliveries so far, told after each, paid once for a declared number of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import argument, command, option
from velado.apps.cli.engine_flags import RowSourceFlags, is_lake
from velado.apps.cli.query_flags import PriceFlags, ProtectedFlags
from velado.errors import NoRows, ParameterError
from velado.text import say

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.data.table import Table
    from velado.query.identity import TableIdentity
    from velado.query.unit import Unit


@command("running")
def running(
    file: flags.Source,
    sql: Annotated[str, argument("SQL", help="One COUNT, SUM or HISTOGRAM, FROM deliveries.")],
    *,
    schema: flags.MaybeSchema = None,
    releases: Annotated[
        int,
        option("--releases N", min=1, help="How many totals will be told in all, one after each delivery."),
    ],
    deliveries: Annotated[
        int,
        option("--deliveries N", min=1, help="The most deliveries in which one person or group counts."),
    ] = 1,
    delivery: Annotated[
        str | None,
        option(
            "--delivery NAME",
            help="What this delivery is called: it is counted once under that name, whatever its rows are. Without one it is known by its rows.",
        ),
    ] = None,
    price: PriceFlags,
    protected: ProtectedFlags,
    engine: RowSourceFlags,
) -> None:
    """Add a delivery to a running total and tell it, with differential privacy over all deliveries together.

    A delivery is a file, a folder or pattern of files, or a table of a database (--table), and is held in memory while it is counted.

    The first call pays for all totals, before a row is read; give the same command with the next file to go on. A delivery that was
    counted before is not counted again: its total is told once more. Needs a ledger of its own (--ledger, or [dataset] of the schema).
    """
    if schema is None:
        raise ParameterError(
            "No schema was given.",
            "Bounds, domains and who is protected are declared there and never read off the rows.",
            "Pass --schema FILE; `velado inspect` writes a first version.",
        )
    with show.waiting():
        from velado.data.io import read_schema
        from velado.query.budget import Budget, measure_word
        from velado.query.identity import TableIdentity
        from velado.query.running.running_total import RunningTotal, price_running
        from velado.query.store import create_ledger, ledger_exists, open_soon

        declared = read_schema(schema)
        unit = protected.in_(declared)
        place = price.ledger or declared.dataset.ledger_file
        if place is None and not price.price:
            raise ParameterError(
                "No ledger was named.",
                "All deliveries are accounted for in one, so it cannot lie beside one of them.",
                "Name it, for example --ledger visits.ledger.",
            )
        allowed = price.allowed(None)
        measure = "epsilon" if allowed is None else allowed.measure
        spend = None if allowed is None else allowed.total
        made = price_running(
            sql, declared, measure, releases=releases, deliveries=deliveries, spend=spend, within=price.within,
            unit=unit,
        )  # fmt: skip
        asked = Budget(measure, made.charge, None if allowed is None else allowed.delta)
        total = price.total(asked)
    if price.price:
        cost = say(
            "All totals together cost {measure} {cost:.6g}.",
            measure=measure_word(measure),
            cost=float(made.charge),
        )
        show.result(made.to_dict(), [*made.sentences(), cost])
        return
    assert place is not None
    with show.waiting():
        ledger = (
            open_soon(place, price.seal)
            if ledger_exists(place, price.seal)
            else create_ledger(place, Path(str(place)).stem, total or asked, price.seal)
        )
        with closing(ledger):
            held = ledger.state().budget
            if held.measure != measure:
                raise ParameterError(
                    say(
                        "The ledger counts in {held}, the question was priced in {asked}.",
                        held=held.measure,
                        asked=measure,
                    ),
                    "The two measures cannot be added.",
                    say("Ask with --{measure}.", measure=held.measure),
                )
            series = RunningTotal(
                sql, declared, ledger, releases=releases, deliveries=deliveries,
                spend=spend if price.within is None else None, within=price.within, unit=unit, analyst=price.analyst,
            )  # fmt: skip
            table, known = _delivery(file, declared, unit, engine)
            if delivery is not None and known is None:
                known = TableIdentity(())  # the table belongs to the ledger all the same
            found = series.add(table, known_as=delivery, known=known)
    rows = [["-" if cell is None else str(cell) for cell in row] for row in found.frame.iter_rows()]
    title = say("Total after delivery {number} of {releases}", number=found.number, releases=releases)
    from velado.report.query_lines import running_lines

    lines = running_lines(found, held.delta)
    show.result(found.to_dict, [show.table(title, list(found.frame.columns), rows), *lines])


def _delivery(
    place: str, declared: Schema, unit: Unit, engine: RowSourceFlags
) -> tuple[Table | None, TableIdentity | None]:
    """The rows of a delivery wherever they lie, none where nobody came, and by what a server knows their table."""
    table = _table(place, declared, engine)
    if not engine.serves(place):
        return table, None
    from velado.query.engines import engine_for_postgres

    # Its content is not hashed there: the delivery is known by the rows that were read.
    with closing(engine_for_postgres(place, engine.table or "", declared, unit, version="delivery")) as there:
        return table, there.identity


def _table(place: str, declared: Schema, engine: RowSourceFlags) -> Table | None:
    from velado.data.io import read_table

    try:
        if not (engine.stays(place) or is_lake(place)):
            return read_table(Path(place), declared, "drop")
        import polars as pl

        with engine.opened(place, declared) as rows:
            frame = pl.DataFrame(pl.from_arrow(rows.sample(rows.rows)))
        return read_table(frame, declared, "drop")
    except NoRows:
        return None
