"""The coefficients along a path of penalties as a chart: how each column comes in and grows as the penalty falls."""

from __future__ import annotations

from collections.abc import Sequence

from velado.learning.regression.job import INTERCEPT
from velado.learning.regression.penalty_path import PenaltyPath
from velado.report.charts import INK, Box, Scale, axes, colour, dash, group, label, line, svg
from velado.text import say, written

_WIDTH, _MOST_NAMED = 640, 12
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'


def path_chart(path: PenaltyPath, names: Sequence[str]) -> str:
    """A file of its own: each coefficient, as a share of its largest size on the path, over falling penalties.

    Shares, because columns in different units have no common scale; the upright line is BIC's choice.

    >>> path = PenaltyPath(kind="lasso", penalties=(1.0, 0.1), coefficients=((2.0, 0.0), (1.0, 0.5)), bic=(9.0, 3.0), chosen=1)
    >>> path_chart(path, [INTERCEPT, "age"]).count('class="column"')
    1
    """
    places = [place for place, name in enumerate(names) if name != INTERCEPT]
    box = Box(46, 50, 440, 300)
    across = Scale(max(path.penalties), min(path.penalties), box.left, box.right, "log")
    up = Scale(-1.05, 1.05, box.bottom, box.top)
    drawn, named = [], []
    for at, place in enumerate(places):
        values = [beta[place] for beta in path.coefficients]
        most = max(map(abs, values)) or 1.0
        points = [
            (across.at(penalty), up.at(value / most))
            for penalty, value in zip(path.penalties, values, strict=True)
        ]
        drawn.append(
            group(
                [line(points, dash=dash(at // 8), tip=names[place], kind="s")],
                colour(at),
                kind="column",
            )
        )
        if at < _MOST_NAMED:
            y = 60 + 20 * at
            named.append(
                group([line([(452, y - 4), (476, y - 4)], dash=dash(at // 8))], colour(at), kind="key")
            )
            named.append(label(482, y, names[place][:24], size=11))
    if len(places) > _MOST_NAMED:
        more = say("and {more} more", more=len(places) - _MOST_NAMED)
        named.append(label(482, 60 + 20 * _MOST_NAMED, more, size=11))
    chosen = across.at(path.penalties[path.chosen])
    rule = f'<path d="M{chosen} {box.top}V{box.bottom}" stroke="{INK}" stroke-dasharray="4 3"/>'
    marks = [
        (across.at(penalty), written(penalty, ".2g"))
        for penalty in path.penalties[:: max(1, len(path.penalties) // 5)]
    ]
    title = say("Coefficients along the path of penalties")
    description = say(
        "Each line is one column's coefficient as a share of its largest; the penalty falls from left to right. The dashed upright line "
        "is the penalty that BIC chose, {penalty:.3g}.",
        penalty=path.penalties[path.chosen],
    )
    frame = axes(
        box,
        across=marks,
        up=up.marks(50, lambda value: written(value, ".1f")),
        across_title=say("penalty"),
        up_title=say("share of the largest"),
    )
    height = max(350, 80 + 20 * min(len(places), _MOST_NAMED + 1))
    text = svg(title, description, _WIDTH, height, [frame, rule, *drawn, *named])
    # A page needs no namespace inside it; a file of its own does.
    return text.replace("<svg", "<svg" + _NAMESPACE, 1)
