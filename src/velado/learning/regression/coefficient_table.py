"""A fit as its reader asks for it: t or z, p, 95 % intervals, odds ratios, variance inflation, R^2, and what to be careful about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist

from velado.learning.regression.families import FAMILIES
from velado.learning.regression.fit import Fit
from velado.learning.regression.job import INTERCEPT
from velado.learning.regression.penalty_path import PenaltyPath
from velado.text import Language, Sentence, say, say_n, written

CAREFUL_INFLATION = 10.0
CAREFUL_CONDITION = 1000.0
MOST_LOGARITHM = 690.0
"""Ratios beyond e to this power, or below e to less it, are told as such."""
LEAST_CHANCE = 1e-16
"""Smaller chances are not told: no model is that true."""


def degrees_of(fit: Fit) -> int | None:
    """The degrees of freedom of t, or None where z is used: with noise, and for families other than linear."""
    rows = fit.how.get("rows")
    if (
        not FAMILIES[fit.family].sums
        or fit.promise.differential_privacy is not None
        or not isinstance(rows, int)
    ):
        return None
    return max(1, rows - len(fit.names))


def two_sided(value: float, degrees: int | None) -> float:
    """The chance of a value at least as far from 0: of t with so many degrees of freedom, or of the normal.

    >>> round(two_sided(2.0, 10), 4), round(two_sided(1.959964, None), 4)
    (0.0734, 0.05)
    """
    if degrees is None:
        return math.erfc(abs(value) / math.sqrt(2))
    return _beta_share(degrees / 2, 0.5, degrees / (degrees + value * value))


def _beta_share(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function by its continued fraction (Lentz's method), good to some 14 digits."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / _away(1 + term * d), _away(1 + term / c)
            total *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * total / a


def _away(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300


def quantile(degrees: int | None, chance: float = 0.975) -> float:
    """The value below which t (or the normal) lies with that chance, by bisection on `two_sided`.

    >>> round(quantile(10), 4), round(quantile(None), 4)
    (2.2281, 1.96)
    """
    if degrees is None:
        return NormalDist().inv_cdf(chance)
    low, high = 0.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, degrees) > 2 * (1 - chance) else (low, middle)
    return (low + high) / 2


def intervals(fit: Fit) -> tuple[tuple[float, float], ...] | None:
    """The 95 % intervals of the coefficients, where the fit has standard errors."""
    if fit.standard_errors is None:
        return None
    width = quantile(degrees_of(fit))
    pairs = zip(fit.coefficients, fit.standard_errors, strict=True)
    return tuple((beta - width * error, beta + width * error) for beta, error in pairs)


def coefficient_rows(fit: Fit, language: Language | None = None) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of coefficients.

    >>> from velado.learning.regression.simulate import simulate, small_job, small_rows
    >>> fit, _ = simulate(small_job(), dict.fromkeys(("c0", "c1", "c2"), small_rows()))
    >>> coefficient_rows(fit)[0]
    ['column', 'coefficient', 'VIF']
    """

    def text(value: float, form: str = ".4g") -> str:
        return written(value, form) if language is None else written(value, form, language)

    degrees, spans = degrees_of(fit), intervals(fit)
    head: list[str] = [say("column"), say("coefficient")]
    if spans is not None:
        head += [say("standard error"), "z" if degrees is None else "t", "p", say("95% from"), say("95% to")]
    if fit.inflation is not None:
        head.append("VIF")
    rows = []
    for place, (name, beta) in enumerate(zip(fit.names, fit.coefficients, strict=True)):
        row = [say("(intercept)") if name == INTERCEPT else name, text(beta, ".10g")]
        if spans is not None and fit.standard_errors is not None:
            error = fit.standard_errors[place]
            value = beta / error if error > 0 else math.copysign(math.inf, beta)
            chance = two_sided(value, degrees) if math.isfinite(value) else 0.0
            told = text(chance, ".2g") if chance >= LEAST_CHANCE else f"<{text(LEAST_CHANCE, '.0e')}"
            row += [text(error), text(value) if math.isfinite(value) else "", told]
            row += [text(end) for end in spans[place]]
        if fit.inflation is not None:
            row.append("" if name == INTERCEPT else text(fit.inflation[place], ".3g"))
        rows.append(row)
    return head, rows


def ratio_rows(fit: Fit, language: Language | None = None) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of odds ratios (logistic) or rate ratios (poisson), each for a step that its row says.

    Of the intercept it would be the odds or the rate where all columns are 0, no ratio.

    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> from velado.learning.protocols.parts import fit_of
    >>> from velado.learning.regression.fit import Solved
    >>> from velado.learning.regression.simulate import small_job
    >>> job = small_job(family="logistic", target=Bounded("y", (0, 1)))
    >>> ratio_rows(fit_of(job, Solved(coefficients=(1.0, 0.0))))
    (['column', 'for a difference of', 'odds ratio'], [['x', '1', '1']])
    """
    if not FAMILIES[fit.family].ratio:
        return [], []

    def text(value: float, form: str) -> str:
        return written(value, form) if language is None else written(value, form, language)

    def ratio(logarithm: float) -> str:
        if abs(logarithm) > MOST_LOGARITHM:  # no float, or one that would be printed as 0
            end = math.copysign(MOST_LOGARITHM, logarithm)
            return f"{'>' if end > 0 else '<'}{text(math.exp(end), '.0e')}"
        return text(math.exp(logarithm), ".5g")

    spans = intervals(fit)
    head: list[str] = [say("column"), say("for a difference of")]
    head.append(FAMILIES[fit.family].ratio)
    head += [say("95% from"), say("95% to")] if spans is not None else []
    steps = {column.name: step_of(float(column.high - column.low)) for column in fit.features}
    rows = []
    for place, (name, beta) in enumerate(zip(fit.names, fit.coefficients, strict=True)):
        if name != INTERCEPT:
            ends = () if spans is None else spans[place]
            told = [ratio(end * steps[name]) for end in (beta, *ends)]
            rows.append([name, text(steps[name], ".4g"), *told])
    return head, rows


def step_of(span: float) -> float:
    """The difference in a column that a ratio is told for: 1, or a power of ten where 1 is beyond the column's span or next to nothing of it.

    >>> step_of(120), step_of(1e-7), step_of(0.06), step_of(250_000)
    (1.0, 1e-07, 0.01, 1000.0)
    """
    if 1 <= span <= 1000:
        return 1.0
    part = span if span < 1 else span / 100
    return float(f"1e{math.floor(math.log10(part) + 1e-9)}")


def path_rows(fit: Fit, language: Language | None = None) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of a path: without a penalty, at the one BIC chose, and from which on a column is in.

    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> from velado.learning.regression.simulate import simulate, small_job, small_rows
    >>> job = small_job(moments=True, path="lasso", target=Bounded("y", (-9, 11)))
    >>> fit, _ = simulate(job, dict.fromkeys(("c0", "c1", "c2"), small_rows()))
    >>> path_rows(fit)[0]
    ['column', 'without a penalty', 'at the chosen penalty', 'is in from penalty']
    """
    path = fit.path
    if path is None:
        return [], []

    def text(value: float, form: str) -> str:
        return written(value, form) if language is None else written(value, form, language)

    head: list[str] = [say("column"), say("without a penalty"), say("at the chosen penalty")]
    sparse = path.kind != "ridge"
    head += [say("is in from penalty")] if sparse else []
    rows = []
    for place, (name, beta) in enumerate(zip(fit.names, fit.coefficients, strict=True)):
        constant = name == INTERCEPT
        row = [say("(intercept)") if constant else name, text(beta, ".6g"), text(path.best[place], ".6g")]
        if sparse:
            enters = path.enters(place)
            row.append("" if constant else say("never") if enters is None else text(enters, ".3g"))
        rows.append(row)
    return head, rows


def path_facts(fit: Fit) -> Iterator[Sentence]:
    """What is told of a path beside its table."""
    path = fit.path
    if path is None:
        return
    if path.held_out:
        low, high = reversed(path.as_good)
        yield say(
            "Penalty {penalty:,.4g}, number {place} of {count} from the largest, predicted rows that were held out in turn best: mean "
            "squared error {error:,.4g}, standard error {spread:,.2g}. From {low:,.4g} to {high:,.4g} penalties do as well within "
            "one standard error.",
            penalty=path.penalties[path.chosen],
            place=path.chosen + 1,
            count=len(path.penalties),
            error=path.held_out[path.chosen],
            spread=path.held_out_errors[path.chosen],
            low=low,
            high=high,
        )
        yield say(
            "The sums of every part that was held out were told by themselves, beside those of all rows."
        )
    else:
        yield from _bic_choice(path)
    yield say(
        "Coefficients at the chosen penalty are drawn towards 0 and were chosen on the same rows: they have no standard errors. "
        "Use them to predict, and those without a penalty to infer."
    )
    if path.chosen == len(path.penalties) - 1:
        yield say("The smallest penalty was chosen: these rows hardly ask for one.")


def _bic_choice(path: PenaltyPath) -> Iterator[Sentence]:
    yield say(
        "BIC chose penalty {penalty:,.4g}, number {place} of {count} from the largest, on columns of standard deviation 1 "
        "(scikit-learn's alpha). It cost nothing further: all follows from the same sums.",
        penalty=path.penalties[path.chosen],
        place=path.chosen + 1,
        count=len(path.penalties),
    )


def facts_of(fit: Fit) -> Iterator[Sentence]:
    """What is told of the fit as a whole."""
    facts = fit.facts
    if "r_squared" in facts and INTERCEPT in fit.names:
        yield say(
            "R2 {value:.4f}: this share of the target's variance is explained, on the rows of the fit.",
            value=facts["r_squared"],
        )
    elif "r_squared" in facts:
        yield say(
            "R2 {value:.4f}: this share of the target's squares about 0 is explained. Without an intercept it cannot be "
            "compared with the R2 of other fits.",
            value=facts["r_squared"],
        )
    if "deviance" in facts:
        yield say(
            "Deviance {deviance:,.6g}, found in {rounds} rounds.",
            deviance=facts["deviance"],
            rounds=int(facts.get("rounds", 0)),
        )
    if "ridge" in facts:
        yield say(
            "With noise: penalty {ridge:,.4g} chosen by the noise, in units of columns scaled to -1 and 1. Errors and "
            "intervals count sampling, noise and the penalty's bias; they are an approximation.",
            ridge=facts["ridge"],
        )
    if "held_back" in facts:
        yield say(
            "With noise in each of {rounds} rounds. Errors and intervals count sampling, noise and the part of the way that the "
            "rounds did not go; they are an approximation.",
            rounds=int(facts.get("rounds", 0)),
        )
        if facts["held_back"]:
            yield say(
                "In {held} of {width} directions the noise is larger than what the columns tell: coefficients are drawn towards "
                "0 there, and their intervals are guesses. More rows, more budget, fewer columns or narrower bounds help.",
                held=int(facts["held_back"]),
                width=len(fit.names),
            )


def cautions(fit: Fit) -> Iterator[Sentence]:
    """What a reader of the coefficients is warned of: columns that nearly follow from the others, errors that are too small.

    >>> from velado.learning.regression.simulate import simulate, small_job, small_rows
    >>> fit, _ = simulate(small_job(), dict.fromkeys(("c0", "c1", "c2"), small_rows()))
    >>> list(cautions(fit))
    []
    """
    pairs = zip(fit.names, fit.inflation or (), strict=False)
    high = [name for name, value in pairs if name != INTERCEPT and value > CAREFUL_INFLATION]
    condition = fit.facts.get("condition", 1.0)
    if high:
        yield say_n(
            "{columns} nearly follows from the other columns (variance inflation above 10; the condition number is {condition:,.3g}). Read "
            "its coefficient together with theirs: it may change much when another column is left out.",
            "{columns} nearly follow from the other columns (variance inflation above 10; the condition number is {condition:,.3g}). Read "
            "their coefficients together: a single one may change much when another column is left out.",
            len(high),
            columns=", ".join(high),
            condition=condition,
        )
    elif condition > CAREFUL_CONDITION:
        yield say(
            "No column nearly follows from the others by itself, but together they nearly depend on one another (condition number "
            "{condition:,.3g}, above 1,000). Read their coefficients together.",
            condition=condition,
        )
    job = fit.how.get("job")
    if isinstance(job, Mapping) and job.get("weight") and fit.standard_errors is not None:
        yield (
            say(
                "Standard errors take a weight for how exactly its row was measured. For weights of a sample survey they are wrong."
            )
            if FAMILIES[fit.family].dispersed
            else say(
                "Standard errors take a weight for a number of like rows. For weights of a sample survey they are wrong."
            )
        )
    rows = fit.how.get("rows")
    if "deviance" in fit.facts and isinstance(rows, int):
        remark = FAMILIES[fit.family].remark(fit.facts, max(1, rows - len(fit.names)))
        if remark:
            yield remark
