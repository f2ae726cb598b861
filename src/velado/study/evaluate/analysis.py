"""Study: every result with its mean and interval over seeds, the trade-off, and what the protocol alone does.

Differences are taken seed by seed (the same split, the same random choices) before they are averaged, so that what all
methods share cancels. Frames are Polars; `to_dict` is what JSON, Markdown and the page are made from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import Any

import polars as pl

from velado.measures.models.quality import QUALITIES, Interval, bootstrap_interval, interval
from velado.randomness import seeded
from velado.study.evaluate.federated_cells import gaps_of
from velado.study.evaluate.load import Material
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, protocol_named
from velado.study.evaluate.study_grid import ORIGINAL
from velado.study.evaluate.work import RELEASE_NUMBERS
from velado.study.recipe import Language

# What the runs across clients come to: their fits as the page draws them, and one row per setting over seeds.

FEDERATED_SETTING = ("model", "split", "method", "k")
NUMBERS = ("accuracy", "auc", "log_loss")


def fits_of(results: pl.DataFrame) -> list[dict[str, Any]]:
    """Every run as `FederatedFit.to_dict` gives it, the method named as in the study; *gap* says why one was given up."""
    cells = results.filter((pl.col("kind") == "federated") & pl.col("fit").is_not_null())
    return [
        {
            **json.loads(row["fit"]),
            "method": row["method"],
            "k": row["k"],
            "seed": row["seed"],
            "gap": row["reason"] if row["status"] == "gap" else None,
        }
        for row in cells.iter_rows(named=True)
    ]


def summary_of(
    results: pl.DataFrame, interval_of: Callable[[str, pl.Series], Interval | None]
) -> list[dict[str, Any]]:
    """One row per model, split, method and k: quality after the last round with its interval over seeds.

    `drop_accuracy` is what was lost, seed by seed, against clients that share their rows untouched. *rounds* and
    *applied* count over all seeds, *sat_out* the clients without a release or with too few rows, *missed* the answers that
    were asked for and did not come. NCP and linkage are those of the clients' own releases: least, median, most.
    """
    cells = results.filter((pl.col("kind") == "federated") & (pl.col("status") == "done"))
    base = cells.filter(pl.col("method") == ORIGINAL).select(
        "model", "split", "seed", pl.col("accuracy").alias("untouched")
    )
    cells = cells.join(base, on=["model", "split", "seed"], how="left").with_columns(
        drop_accuracy=pl.col("untouched") - pl.col("accuracy")
    )
    rows = []
    for values, part in cells.group_by(FEDERATED_SETTING, maintain_order=True):
        row: dict[str, Any] = dict(zip(FEDERATED_SETTING, values, strict=True)) | {"seeds": part.height}
        for name in (*NUMBERS, "drop_accuracy"):
            found = interval_of(name, part.get_column(name))
            ends = (None, None, None) if found is None else (found.mean, found.low, found.high)
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
        row["majority"] = part.get_column("majority").mean()
        fits = [json.loads(text) for text in part.get_column("fit").to_list()]
        rounds = [one for fit in fits for one in fit["rounds"]]
        clients = [one for fit in fits for one in fit["clients"]]
        rows.append(
            row
            | {
                "rounds": len(rounds),
                "applied": sum(bool(one["applied"]) for one in rounds),
                "missed": sum(one["asked"] - one["replied"] for one in rounds),
                "clients": len(clients),
                "sat_out": sum(1 for one in clients if one.get("gap")),
                **_ends("ncp", clients),
                **_ends("linkage", clients),
            }
        )
    return rows


def gaps_by_setting(fits: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What is missing inside runs that were finished, setting by setting: each sentence once, with how often it holds."""
    out: dict[tuple[Any, ...], dict[str, int]] = {}
    for fit in fits:
        split = fit["split"] if fit["split"] != "dirichlet" else f"dirichlet({fit['alpha']:g})"
        counts = out.setdefault((fit["model"], split, fit["method"], fit["k"]), {})
        for text in gaps_of(fit):
            counts[text] = counts.get(text, 0) + 1
    return [
        dict(zip(FEDERATED_SETTING, key, strict=True))
        | {"gaps": [text if times == 1 else f"{text} (x {times})" for text, times in counts.items()]}
        for key, counts in out.items()
        if counts
    ]


def _ends(name: str, clients: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    known = [one[name] for one in clients if one[name] is not None]
    found = (min(known), median(known), max(known)) if known else (None, None, None)
    return dict(zip((f"{name}_least", f"{name}_median", f"{name}_most"), found, strict=True))


SETTING = ("method", "k", "guarantees")
_CELL = ("protocol", *SETTING, "seed", "model", "split", "kind", "reason")


def worse_when_larger(name: str) -> bool:
    """Whether a larger number of this quality is worse."""
    return name == "log_loss"


@dataclass(frozen=True, repr=False)
class Study:
    """The results of a study, one row per cell, and what they come to.

    *planned* counts the cells of the grid; every one of them is in *results*, done or as a gap with its reason.
    """

    material: Material
    results: pl.DataFrame
    planned: int

    @classmethod
    def of(cls, material: Material, results: pl.DataFrame, planned: int) -> Study:
        """The study of these results."""
        return cls(material, results, planned)

    def __repr__(self) -> str:
        return f"Study({self.results.height} of {self.planned} cells, {self.gaps.height} gaps)"

    @property
    def main(self) -> str:
        """The first quality of the recipe: what recommendations and trade-offs are about."""
        return self.material.recipe.quality[0]

    @property
    def protocol(self) -> str:
        """The protocol that recommendations rest on: the default one where it was run."""
        names = self.material.recipe.protocols
        return DEFAULT_PROTOCOL if DEFAULT_PROTOCOL in names else names[0]

    @cached_property
    def done(self) -> pl.DataFrame:
        """Cells with numbers."""
        return self.results.filter(pl.col("status") == "done")

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """Cells without numbers, with their reasons."""
        return self.results.filter(pl.col("status") == "gap")

    @property
    def partial(self) -> pl.DataFrame:
        """Cells with numbers of which one could not be computed, with its reason."""
        return self.done.filter(pl.col("reason").fill_null("") != "")

    @property
    def any_release(self) -> bool:
        """Whether at least one method made a release."""
        return self.done.filter((pl.col("kind") == "release") & (pl.col("method") != ORIGINAL)).height > 0

    @cached_property
    def releases(self) -> pl.DataFrame:
        """Loss and risk of every setting: mean, low and high over seeds. Scope says what was anonymized."""
        cells = self.done.filter(pl.col("kind") == "release")
        return self._summary(cells, ("scope", *SETTING), (*RELEASE_NUMBERS, "groups", "smallest", "seconds"))

    @cached_property
    def quality(self) -> pl.DataFrame:
        """Quality of every model and setting under every protocol: mean, low and high over seeds.

        `drop_<quality>` is what it lost against the same model on the original rows, seed by seed, in the
        direction that larger is worse. With a single seed the interval of accuracy is over its test rows.
        """
        cells = self._with_drops()
        drops = [f"drop_{name}" for name in QUALITIES]
        numbers = (*QUALITIES, *drops, "majority", "seconds", "test_rows")
        table = self._summary(cells, ("protocol", *SETTING, "model"), numbers)
        rows = [self._with_test_rows(row) for row in table.to_dicts()]
        return pl.DataFrame(rows, schema=table.schema)

    def _with_test_rows(self, row: dict[str, Any]) -> dict[str, Any]:
        # One seed says nothing about splits, but its test rows say how sure its accuracy is.
        if row["seeds"] > 1 or row["accuracy"] is None or row["test_rows"] is None:
            return row
        random = seeded(0, "bootstrap")
        found = bootstrap_interval(
            row["accuracy"], int(row["test_rows"]), random, self.material.recipe.confidence
        )
        return {**row, **_spread("accuracy", found)}

    def _with_drops(self) -> pl.DataFrame:
        cells = self.done.filter(pl.col("kind") == "model")
        keys = ["protocol", "seed", "model"]
        base = cells.filter(pl.col("method") == ORIGINAL).select(*keys, *QUALITIES)
        both = cells.join(base, on=keys, how="left", suffix="_original")
        return both.with_columns(
            (
                (pl.col(name) - pl.col(f"{name}_original"))
                if worse_when_larger(name)
                else (pl.col(f"{name}_original") - pl.col(name))
            ).alias(f"drop_{name}")
            for name in QUALITIES
        )

    def _summary(self, cells: pl.DataFrame, keys: Sequence[str], numbers: Sequence[str]) -> pl.DataFrame:
        rows = []
        for values, part in cells.group_by(keys, maintain_order=True):
            row: dict[str, Any] = dict(zip(keys, values, strict=True)) | {"seeds": part.height}
            for name in numbers:
                row |= _spread(name, possible(name, self.interval_of(part.get_column(name))))
            rows.append(row)
        columns = [f"{name}{end}" for name in numbers for end in ("", "_low", "_high")]
        types: dict[str, Any] = dict.fromkeys(keys, pl.String) | {"k": pl.Int64, "seeds": pl.Int64}
        return pl.DataFrame(rows, schema=types | dict.fromkeys(columns, pl.Float64))

    def interval_of(self, series: pl.Series) -> Interval | None:
        """Mean and interval of what is known of *series*; None where nothing is."""
        known = series.drop_nulls().to_list()
        return interval(known, self.material.recipe.confidence) if known else None

    @cached_property
    def tradeoff(self) -> pl.DataFrame:
        """One row per setting under the study's protocol: loss, risk, and the mean drop over models.

        The drop of a seed is averaged over the models first; its interval is over seeds. A seed in which a model is
        missing does not count: a mean over fewer models is not the same number.
        """
        recipe = self.material.recipe
        drop = f"drop_{self.main}"
        per_seed = self._over_models
        quality = self._summary(per_seed, SETTING, (drop, self.main))
        scope = protocol_named(self.protocol).scope
        releases = self.releases.filter(pl.col("scope") == scope).select(
            *SETTING,
            *(
                pl.col(f"{source}{end}").alias(f"{name}{end}")
                for name, source in (("loss", recipe.loss), ("risk", recipe.risk))
                for end in ("", "_low", "_high")
            ),
        )
        joined = releases.join(quality, on=list(SETTING), how="left", nulls_equal=True)
        return joined.rename({f"{drop}{end}": f"drop{end}" for end in ("", "_low", "_high")})

    def difference(
        self, first: dict[str, Any], second: dict[str, Any], model: str | None = None
    ) -> Interval | None:
        """How much more of the main quality *first* keeps than *second*, seed by seed; over all models or one."""
        one, two = self.drops_of(first, model), self.drops_of(second, model)
        gains = [two[seed] - one[seed] for seed in one if seed in two]
        return self.interval_of(pl.Series(gains, dtype=pl.Float64))

    def drops_of(self, setting: Mapping[str, Any], model: str | None = None) -> dict[int, float]:
        """What *setting* lost of the main quality in each seed; the mean over all models, or one model's."""
        key = (setting["method"], setting["k"], setting["guarantees"])
        return self._drops.get((*key, model), {})

    @cached_property
    def models_asked(self) -> list[str]:
        """The models of the study under its protocol, the commonest class left aside."""
        cells = self.results.filter((pl.col("protocol") == self.protocol) & (pl.col("kind") == "model"))
        names = cells.get_column("model").drop_nulls().unique(maintain_order=True).to_list()
        return [name for name in names if name != "majority"]

    @cached_property
    def models_left_out(self) -> list[str]:
        """Those of them that have no drop of the main quality anywhere: no mean over models holds them."""
        known = set(self._model_drops.filter(pl.col("method") != ORIGINAL).get_column("model"))
        return [name for name in self.models_asked if name not in known]

    @cached_property
    def _model_drops(self) -> pl.DataFrame:
        drop = f"drop_{self.main}"
        return self._with_drops().filter(
            (pl.col("protocol") == self.protocol)
            & (pl.col("model") != "majority")
            & pl.col(drop).is_not_null()
        )

    @cached_property
    def _over_models(self) -> pl.DataFrame:
        """Main quality and drop of each setting and seed, averaged over the models; only where all of them are known."""
        cells = self._model_drops.filter(~pl.col("model").is_in(self.models_left_out))
        means = (pl.col(f"drop_{self.main}").mean(), pl.col(self.main).mean())
        found = cells.group_by([*SETTING, "seed"], maintain_order=True).agg(*means, pl.len())
        return found.filter(pl.col("len") == cells.get_column("model").n_unique())

    @cached_property
    def _drops(self) -> dict[tuple[Any, ...], dict[int, float]]:
        drop = f"drop_{self.main}"
        found: dict[tuple[Any, ...], dict[int, float]] = {}
        whole = self._over_models.with_columns(model=pl.lit(None, dtype=pl.String))
        for frame in (whole, self._model_drops):
            for row in frame.iter_rows(named=True):
                key = tuple(row[name] for name in (*SETTING, "model"))
                found.setdefault(key, {})[row["seed"]] = row[drop]
        return found

    @cached_property
    def best(self) -> pl.DataFrame:
        """For each k, promise and model, the method that keeps most, the runner-up, and the difference's interval."""
        rows = []
        table = self.quality.filter(
            (pl.col("protocol") == self.protocol)
            & (pl.col("method") != ORIGINAL)
            & (pl.col("model") != "majority")
        )
        drop = f"drop_{self.main}"
        for (k, promised, model), part in table.group_by(["k", "guarantees", "model"], maintain_order=True):
            ranked = part.filter(pl.col(drop).is_not_null()).sort(drop, "method").to_dicts()
            if len(ranked) < 2:
                continue
            gain = self.difference(ranked[0], ranked[1], str(model))
            rows.append(
                {
                    "k": k,
                    "guarantees": promised,
                    "model": model,
                    "method": ranked[0]["method"],
                    "drop": ranked[0][drop],
                    "second": ranked[1]["method"],
                    **_spread("gain", gain),
                    "sure": bool(gain is not None and gain.low is not None and gain.low > 0),
                }
            )
        types = {"k": pl.Int64, "guarantees": pl.String, "model": pl.String, "method": pl.String}
        numbers = ("gain", "gain_low", "gain_high")
        return pl.DataFrame(
            rows,
            schema={**types, "drop": pl.Float64, "second": pl.String}
            | dict.fromkeys(numbers, pl.Float64)
            | {"sure": pl.Boolean},
        )

    @cached_property
    def protocols(self) -> pl.DataFrame:
        """What the protocol alone does to the differences between methods.

        *drop* is the mean loss of quality against the original under the protocol. For every two methods of the
        same k, promises and model: *between* is the mean distance of their qualities, *due* how far that
        difference moves against the default protocol (what is moved says nothing about the methods), *default* their
        mean distance under the default protocol, *share* the part due to the protocol in what is seen,
        due / (due + default), and *reversed* how many of the *pairs* change their order.
        """
        drop = f"drop_{self.main}"
        cells = self.quality.filter(
            (pl.col("method") != ORIGINAL) & (pl.col("model") != "majority") & pl.col(drop).is_not_null()
        ).select("protocol", *SETTING, "model", drop)
        same = ["protocol", "k", "guarantees", "model"]
        pairs = cells.join(cells, on=same, suffix="_other", nulls_equal=True).filter(
            pl.col("method") < pl.col("method_other")
        )
        pairs = pairs.with_columns((pl.col(f"{drop}_other") - pl.col(drop)).alias("gap"))
        keys = [*same[1:], "method", "method_other"]
        honest = pairs.filter(pl.col("protocol") == DEFAULT_PROTOCOL).select(
            *keys, pl.col("gap").alias("honest")
        )
        pairs = pairs.join(honest, on=keys, how="left", nulls_equal=True)
        moved = pairs.group_by("protocol", maintain_order=True).agg(
            pl.col("gap").abs().mean().alias("between"),
            (pl.col("gap") - pl.col("honest")).abs().mean().alias("due"),
            pl.col("honest").abs().mean().alias("true"),
            (pl.col("gap") * pl.col("honest") < 0).sum().cast(pl.Int64).alias("reversed"),
            pl.col("honest").count().cast(pl.Int64).alias("pairs"),
        )
        together = pl.col("due") + pl.col("true")
        share = pl.when(together > 0).then(pl.col("due") / together).alias("share")
        moved = moved.with_columns(share).rename({"true": "default"})
        drops = cells.group_by("protocol", maintain_order=True).agg(pl.col(drop).mean().alias("drop"))
        return drops.join(moved, on="protocol", how="left")

    @cached_property
    def federated(self) -> list[dict[str, Any]]:
        """Every run across clients, round by round and client by client."""
        return fits_of(self.results)

    @cached_property
    def federated_summary(self) -> list[dict[str, Any]]:
        """The runs across clients, one row per setting: mean, low and high over seeds."""
        return summary_of(self.results, lambda name, series: possible(name, self.interval_of(series)))

    def majority(self) -> float | None:
        """The rate of the commonest class among the test rows, averaged over seeds."""
        cells = self.done.filter((pl.col("protocol") == self.protocol) & (pl.col("kind") == "model"))
        value: Any = cells.get_column("majority").mean()
        return None if value is None else float(value)

    def to_dict(self, language: Language = "en") -> dict[str, Any]:
        """Everything the study found, as plain values; no cell of the table."""
        from velado.study.evaluate.advice import not_tested, recommend
        from velado.study.evaluate.matched import best_at_each_k

        material = self.material
        return {
            "study_version": 1,
            "language": language,
            "recipe": material.recipe.to_dict(),
            "table": {
                "source": material.table.source,
                **material.table.to_dict(),
                "sha256": material.fingerprint,
                "rows_without_target": material.dropped,
                "classes_never_tested": material.alone,
                "classes": len(material.classes),
                "features": list(material.features),
                "features_encoded": material.width,
            },
            "cells": {"planned": self.planned, "done": self.done.height, "gaps": self.gaps.height},
            "main_quality": self.main,
            "protocol": self.protocol,
            "majority": self.majority(),
            "models_left_out": self.models_left_out,
            "recommendation": recommend(self, language),
            "tradeoff": self.tradeoff.to_dicts(),
            "releases": self.releases.to_dicts(),
            "quality": self.quality.to_dicts(),
            "best": self.best.to_dicts(),
            "same_risk": best_at_each_k(self),
            "protocols": self.protocols.to_dicts(),
            "federated": self.federated,
            "federated_summary": self.federated_summary,
            "federated_gaps": gaps_by_setting(self.federated),
            "gaps": self.gaps.select(_CELL).to_dicts(),
            "partial": self.partial.select(_CELL).to_dicts(),
            "not_tested": not_tested(self, language),
        }


SHARES = frozenset(
    {*QUALITIES, *RELEASE_NUMBERS, "majority"} - {"log_loss", "average_group_size", "attribute_gain"}
)
"""Numbers that lie between 0 and 1 by what they are."""


def possible(name: str, found: Interval | None) -> Interval | None:
    """The interval without what cannot be: with two or three seeds Student's reaches beyond 100 %."""
    if found is None or found.low is None or found.high is None or name.startswith("drop_"):
        return found
    if name == "attribute_gain":
        return found
    high = min(found.high, 1.0) if name in SHARES else found.high
    return replace(found, low=max(found.low, 0.0), high=max(high, found.mean))


def _spread(name: str, found: Interval | None) -> dict[str, float | None]:
    if found is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}
