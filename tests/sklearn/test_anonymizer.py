"""The estimator keeps scikit-learn's rules, publishes training rows through the one door, and never sees test rows."""

from __future__ import annotations

import datetime
import pickle
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import velado
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.schema import Schema
from velado.errors import GuaranteeNotMet, IdentifierOpen, ParameterError, SchemaError
from velado.sklearn import Anonymizer

NOT_APPLICABLE: dict[str, str] = {}
"""Checks that the estimator is not expected to pass, each with the reason: there are none."""


@parametrize_with_checks([Anonymizer(method="mondrian")], expected_failed_checks=lambda _: NOT_APPLICABLE)
def test_the_estimator_keeps_the_rules_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([Anonymizer()], expected_failed_checks=lambda _: NOT_APPLICABLE)
def test_with_the_default_method_it_keeps_them_too(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_set_output_transform_polars",
        "check_global_output_transform_pandas",
        "check_global_set_output_transform_polars",
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_dataframe_column_names_consistency",
    ],
)
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning")
def test_it_gives_the_frames_and_names_that_it_is_asked_for(check):
    getattr(estimator_checks, check)("Anonymizer", Anonymizer(method="mondrian"))


def people(rows=120, seed=0):
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "weight": draw.normal(70, 12, rows).round(1),
            "sex": draw.choice(["F", "M"], rows),
            "visits": draw.integers(0, 6, rows),
        },
        index=pd.RangeIndex(1000, 1000 + rows),
    )


def ill(frame):
    return ((frame["age"] + frame["weight"]) > 125).astype(int).to_numpy()


QUASI = ["age", "weight", "sex"]


def anonymizer(**settings):
    return Anonymizer(**{"quasi": QUASI, "method": "mondrian", "k": 5, **settings})


def test_training_rows_come_out_as_release_published_them():
    frame = people()
    out = anonymizer(intervals="text").fit_transform(frame)
    kinds = {"age": "numeric", "weight": "numeric", "sex": "categorical"}
    columns = {name: {"role": "quasi", "kind": kind} for name, kind in kinds.items()}
    schema = Schema.from_dict({"columns": {**columns, "visits": {"role": "other", "kind": "numeric"}}})
    release = velado.anonymize(frame, schema, "mondrian", k=5, per="row")
    assert pl.from_pandas(out).equals(release.aligned)
    assert out.index.equals(frame.index)
    assert out.groupby(QUASI).size().min() >= 5


def test_the_promise_says_what_is_guaranteed_and_what_is_measured():
    learned = anonymizer().fit(people())
    assert (learned.promise_.training, learned.promise_.new_rows) == ("guaranteed", "measured")
    assert [verdict.holds for verdict in learned.promise_.verdicts] == [True]
    assert 0 < learned.loss_ < 1


def test_a_table_that_cannot_be_published_is_not_learned():
    frame = people().assign(mail=[f"p{n}@example.org" for n in range(120)])
    with pytest.raises(IdentifierOpen, match="mail"):
        anonymizer().fit(frame)
    with pytest.raises(GuaranteeNotMet, match="age"):
        anonymizer().fit(people().assign(again=lambda known: known["age"] * 2))


def test_every_training_row_fits_a_tuple_that_is_true_of_it():
    frame = people()
    learned = anonymizer(intervals="ends").fit(frame)
    assert learned.measure(frame).uncovered == 0
    shown = learned.transform(frame)
    for name in ("age", "weight"):
        assert (shown[f"{name}_low"] <= frame[name]).all() and (frame[name] <= shown[f"{name}_high"]).all()
    assert ((shown["sex"] == "*") | (shown["sex"] == frame["sex"])).all()
    assert (shown["visits"] == frame["visits"]).all()


@pytest.mark.parametrize("method", ["k-member", "mondrian"])
def test_a_row_goes_to_the_narrowest_tuple_that_fits_and_else_to_the_nearest(method):
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"a": draw.normal(size=60), "b": draw.normal(size=60)})
    learned = Anonymizer(method=method, k=4, intervals="ends").fit(frame)
    ends = learned.transform(frame).drop_duplicates().to_numpy()
    low, high = ends[:, ::2], ends[:, 1::2]
    spans = high.max(axis=0) - low.min(axis=0)
    width = ((high - low) / spans).sum(axis=1)
    new = draw.normal(size=(200, 2)) * 1.3
    shown = learned.transform(pd.DataFrame(new, columns=["a", "b"])).to_numpy()
    overlapping = outside = 0
    for row, given in zip(new, shown, strict=True):
        far = (np.clip(np.maximum(low - row, row - high), 0, None) / spans).sum(axis=1)
        nearest = np.flatnonzero(far == far.min())
        overlapping += nearest.size > 1
        outside += far.min() > 0
        assert ends[nearest[width[nearest].argmin()]].tolist() == given.tolist()
    assert outside == learned.measure(pd.DataFrame(new, columns=["a", "b"])).uncovered > 20
    assert overlapping > 2 or method == "mondrian"


def tricky():
    codes = ["J18", "J19", "J20", "K35", "K36", "K37"]
    days = [datetime.date(2020, 1 + n % 3, 1 + n) for n in range(24)]
    return pd.DataFrame(
        {"code": [codes[n % 6] for n in range(24)], "day": days, "age": [*range(20, 43), None]}
    )


def test_codes_days_and_blanks_are_placed_alike_alone_and_together():
    learned = Anonymizer(method="mondrian", k=3, intervals="text").fit(tricky())
    assert any(len(label) == 2 for label in learned.covers_.frame["code"])  # J*, K*
    blank = tricky().assign(code="J99", age=np.nan)
    new = pd.concat([tricky(), blank, tricky().assign(code="new")], ignore_index=True)
    together = learned.transform(new)
    alone = pd.concat([learned.transform(new.iloc[[n]]) for n in range(len(new))])
    pd.testing.assert_frame_equal(together, alone)
    true = [
        shown == "*" or code.startswith(shown.rstrip("*"))
        for code, shown in zip(new["code"][:24], together["code"][:24], strict=True)
    ]
    assert all(true)


def test_the_fitted_estimator_holds_no_row_and_no_value_that_was_not_published():
    frame = people().assign(town=["Nowhere"] + ["Here", "There", "Else"] * 39 + ["Here"] * 2)
    frame.loc[frame.index[7], "weight"] = 71.123456
    learned = anonymizer(quasi=[*QUASI, "town"], intervals="text").fit(frame)
    assert "Nowhere" not in set(learned.covers_.frame["town"])
    kept = pickle.dumps(learned)
    assert b"Nowhere" not in kept
    ends = " ".join(learned.covers_.frame["weight"])
    inside = [weight for weight in frame["weight"] if weight % 1 and f"{weight:.8g}" not in ends]
    assert len(inside) > 20 and 71.123456 in inside
    assert not any(struct.pack("<d", weight) in kept for weight in inside)
    assert b"71.123456" not in kept
    assert not any(name in repr(learned) for name in ("Here", "Nowhere"))


class Remembering(BaseEstimator):
    """A model that keeps the rows it was taught."""

    def fit(self, X, y):
        self.taught_ = X
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y):
        return 0.0


def test_rows_of_the_test_part_are_never_seen_by_fit():
    frame = people()
    folds = list(KFold(4, shuffle=True, random_state=0).split(frame))
    model = make_pipeline(anonymizer(intervals="text"), Remembering())

    def learned(data):
        made = cross_validate(model, data, ill(frame), cv=folds, return_estimator=True)["estimator"]
        return [(one[0].covers_.frame, one[1].taught_) for one in made]

    plain = learned(frame)
    for number, (train, test) in enumerate(folds):
        covers, taught = plain[number]
        assert taught.index.equals(frame.index[train])
        assert covers.equals(anonymizer().fit(frame.iloc[train]).covers_.frame)
        # Whatever the test rows hold, what was learned and taught stays as it is.
        other = frame.copy()
        other.iloc[test, other.columns.get_loc("age")] = 17 + np.arange(len(test)) % 3
        assert learned(other)[number][0].equals(covers)
        pd.testing.assert_frame_equal(learned(other)[number][1], taught)


def test_it_stands_in_pipelines_searches_and_column_transformers():
    frame = people(300)
    numbers = frame.drop(columns="sex")
    model = make_pipeline(anonymizer(quasi=["age", "weight"]), StandardScaler(), LogisticRegression())
    scores = cross_val_score(model, numbers, ill(frame), cv=3)
    assert scores.mean() > 0.8
    search = GridSearchCV(model, {"anonymizer__k": [2, 20]}, cv=3).fit(numbers, ill(frame))
    assert search.best_params_["anonymizer__k"] in (2, 20)
    assert search.best_estimator_[0].k_ == search.best_params_["anonymizer__k"]
    parts = ColumnTransformer(
        [("hidden", anonymizer(quasi=None), ["age", "weight"]), ("plain", "passthrough", ["visits"])],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    out = parts.fit_transform(frame)
    assert out.columns.to_list() == ["age", "weight", "visits"]
    assert out.index.equals(frame.index)


def test_its_settings_are_cloned_and_set_and_checked_when_it_is_fitted():
    made = anonymizer(k=7).set_params(method="mdav", seed=3)
    copy = clone(made)
    assert copy.get_params() == made.get_params() and copy is not made
    with pytest.raises(ParameterError, match="k="):
        anonymizer(k=1).fit(people())
    with pytest.raises(ParameterError, match="intervals"):
        anonymizer(intervals="mean").fit(people())
    with pytest.raises(ParameterError, match="'height'"):
        anonymizer(quasi=["height"]).fit(people())
    with pytest.raises(ParameterError, match="both"):
        anonymizer(schema=hospital_schema()).fit(people())
    assert anonymizer(quasi=[0, 1, 2]).fit(people()).covers_.frame.columns == QUASI
    small = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    with pytest.raises(SchemaError, match="leave it out of X") as told:
        anonymizer(schema=small, quasi=None).fit(people())
    assert "--" not in str(told.value)  # no flags: there is no command here


def test_a_schema_is_read_and_the_target_that_is_not_there_passed_over():
    frame = pd.read_csv(hospital_csv(), dtype=str, keep_default_na=False)
    target = frame.pop("desfecho")
    learned = Anonymizer(hospital_schema(), method="mondrian", k=5, intervals="text")
    out = learned.fit_transform(frame, target)
    assert len(out) == len(frame) and not {"cpf", "nome"} & set(out.columns)
    assert learned.get_feature_names_out().tolist() == out.columns.to_list()
    assert learned.promise_.verdicts[0].unit == "people"
    new = learned.transform(frame.sample(50, random_state=1))
    assert new.columns.to_list() == out.columns.to_list()
    with pytest.raises(SchemaError):
        Anonymizer(hospital_schema()).fit(frame.assign(more="x"))


def test_the_how_to_runs_as_it_is_written(capsys):
    page = Path(__file__).parents[2] / "docs" / "how-to" / "anonymize-in-a-pipeline.md"
    code = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), flags=re.M | re.S)
    exec("\n".join(code), {})
    printed = capsys.readouterr().out
    assert "guaranteed" in printed and "NewRows(rows=10, uncovered=0" in printed


def test_without_scikit_learn_the_error_says_how_to_get_it():
    code = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'sklearn' else find(name, *a)\n"
        "from velado.errors import MissingExtra\n"
        "try:\n    import velado.sklearn\n"
        "except MissingExtra as missing:\n    print(missing.exit_code, missing.fix)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["6", *["Install", "it", "with", "pip", "install", '"velado[ml]".']]
