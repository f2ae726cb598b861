"""What a method notes about its run, and its settings, as words: no Python value is shown as it is."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from velado.report.report_words import Words

if TYPE_CHECKING:
    from velado.release.release import Release

_LEVEL = re.compile(r"(\d+) of (\d+)")
_TOO_LARGE = re.compile(r"not computed for more than (\d+) rows")


def above_best_percent(release: Release) -> int | None:
    """By how many percent at most the loss lies above the best possible, rounded up; None when not known.

    The bound is on the table the method saw. Where column operations came first the loss is told against
    another table, and the two are not compared.
    """
    above = release.notes.get("above_best_possible_at_most")
    if above is None or release.notes.get("lower_bound") is None or release.operations:
        return None
    return math.ceil(100 * float(above) - 1e-6)


def note_rows(notes: Mapping[str, Any], say: Words) -> list[list[str]]:
    """Each note as its name and its value; notes without a value are left out."""
    return [
        [note_name(name, say), _percent(value, say) if name in _SHARES else readable(value, say)]
        for name, value in notes.items()
        if value is not None and value != {} and value != []
    ]


def readable(value: Any, say: Words) -> str:
    """A value of a note or setting as text: numbers as the language writes them, tables as name: value; ..."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, int):
        return say.count(value)
    if isinstance(value, float):
        return few_digits(value, say)
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {readable(part, say)}" for name, part in value.items()) or "–"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(readable(part, say) for part in value) or "–"
    return _text(str(value), say)


def as_typed(value: Any, say: Words) -> str:
    """A setting as a person would type it again; only tables and lists are put into words."""
    nested = isinstance(value, bool | Mapping) or (isinstance(value, Sequence) and not isinstance(value, str))
    return readable(value, say) if nested else str(value)


def few_digits(value: float, say: Words) -> str:
    """A number with four digits that count, large ones with one after the point."""
    if not math.isfinite(value):
        return "–"
    if value.is_integer() or abs(value) >= 1000:
        return say.number(value, 0 if value.is_integer() else 1)
    text = f"{value:.4g}"
    return text.replace(".", ",") if say.language == "pt" else text


_SHARES = frozenset({"lower_bound", "above_best_possible_at_most"})


def _percent(value: Any, say: Words) -> str:
    return say.share(value) if isinstance(value, float) else readable(value, say)


def _text(value: str, say: Words) -> str:
    level = _LEVEL.fullmatch(value)
    if level:
        return say("note_level_of", level=level[1], height=level[2])
    large = _TOO_LARGE.fullmatch(value)
    return say("bound_large", rows=int(large[1])) if large else value


def note_name(name: str, say: Words) -> str:
    """The name of a note in the reader's language; one that is not known here as its author wrote it."""
    known = {
        "groups": say("note_groups"),
        "classes": say("note_groups"),
        "bins": say("note_bins"),
        "intervals": say("note_intervals"),
        "levels": say("note_levels"),
        "loss": say("note_loss_measure"),
        "loss_value": say("note_loss_value"),
        "level_combinations": say("note_level_combinations"),
        "visited": say("note_visited"),
        "proven_optimal": say("note_proven_optimal"),
        "generalized_groups": say("note_generalized_groups"),
        "initial_classes": say("note_initial_classes"),
        "new_clusters": say("note_new_clusters"),
        "outlier_groups": say("note_outlier_groups"),
        "cut": say("note_cut"),
        "categories": say("note_categories"),
        "iterations": say("note_iterations"),
        "evaluations": say("note_evaluations"),
        "loss_of_the_best_start": say("note_loss_of_start"),
        "loss_found_by_the_troop": say("note_loss_found"),
        "rows_cut_by_mondrian": say("note_cut_by_mondrian"),
        "lower_bound": say("note_lower_bound"),
        "lower_bound_reason": say("note_lower_bound_reason"),
        "above_best_possible_at_most": say("note_above_best"),
    }
    return known.get(name, name.replace("_", " "))
