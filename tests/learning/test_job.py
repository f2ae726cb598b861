"""A job file is read whole or refused with a named error that says what to do."""

import copy
from fractions import Fraction
from pathlib import Path

import pytest

from velado.errors import ParameterError, SchemaError, VeladoError
from velado.learning.regression.job import Job
from velado.papers.regression.paper_masked import WITH_PAPER
from velado.settings.declare import specs

DOCUMENT = {
    "format": 1,
    "name": "three hospitals",
    "protocol": "masked",
    "target": {"name": "y", "bounds": [0, "1/2"]},
    "features": [{"name": "age", "bounds": [0, 120]}, {"name": "weight", "bounds": [0.5, 300]}],
    "lambda": 0.1,
    "bits": 20,
    "key_bits": 3072,
    "parties": [
        {"name": "e", "role": "evaluator"},
        {"name": "p", "role": "provider"},
        *({"name": f"c{i}", "role": "client", "address": f"h{i}:1"} for i in range(3)),
    ],
}


def test_the_page_of_the_job_file_has_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "job.md").read_text("utf-8")
    for key, spec in specs(Job).items():
        name = spec.setting.key or key
        assert any(f"| `{form}` |" in page for form in (name, f"[{name}]", f"[[{name}]]")), name


def changed(**more) -> dict:
    document = copy.deepcopy(DOCUMENT)
    document.update(more)
    return document


def without(key: str) -> dict:
    document = copy.deepcopy(DOCUMENT)
    del document[key]
    return document


def with_party(index: int, **more) -> dict:
    document = copy.deepcopy(DOCUMENT)
    document["parties"][index].update(more)
    return document


def test_a_job_reads_back_as_it_was_written_with_numbers_exact() -> None:
    job = Job.from_dict(DOCUMENT, WITH_PAPER)
    assert Job.from_dict(job.to_dict(), WITH_PAPER) == job
    assert Job.from_dict(job.to_dict(), WITH_PAPER).digest() == job.digest()
    assert job.ridge == Fraction(1, 10)
    assert job.target.high == Fraction(1, 2)
    assert job.unknowns == ("(intercept)", "age", "weight")
    assert job.width == 3


def test_every_change_of_the_job_changes_its_digest() -> None:
    first = Job.from_dict(DOCUMENT, WITH_PAPER).digest()
    for document in (
        changed(bits=21),
        changed(name="other"),
        changed(protocol="delegated"),
        changed(**{"lambda": 0.2}),
        changed(intercept=False),
        changed(most_rows=70),
        with_party(2, certificate="ab"),
        with_party(3, address="h9:1"),
    ):
        assert Job.from_dict(document, WITH_PAPER).digest() != first


@pytest.mark.parametrize(
    ("document", "error", "said"),
    [
        (changed(lamda=1), SchemaError, "Did you mean 'lambda'"),
        (changed(colour=1), SchemaError, "Unknown key 'colour'"),
        (changed(**{"a\nb": 1}), SchemaError, "Unknown key 'a?b'"),
        (with_party(2, adress="x"), SchemaError, "Did you mean 'address'"),
        (changed(format=2), SchemaError, "format"),
        (changed(protocol="maskd"), ParameterError, "Did you mean 'masked'"),
        (changed(key_bits=1024), ParameterError, "1024 bits"),
        (changed(key_bits=2049), ParameterError, "2049 bits"),
        (changed(key_bits=1 << 20), ParameterError, "Give 8192 or less"),
        (changed(key_bits="3072"), ParameterError, "without quotes"),
        (changed(intercept=1), ParameterError, "true or false"),
        (changed(bits=True), ParameterError, "cannot be true"),
        (changed(bits=-1), ParameterError, "Give 0 or more"),
        (changed(bits=129), ParameterError, "Give 128 or less"),
        (changed(minutes=0), ParameterError, "a number above 0, at most 10000"),
        (changed(**{"lambda": -1}), ParameterError, "'lambda' in the job cannot be -1"),
        (changed(**{"lambda": "nan"}), ParameterError, "cannot be 'nan'"),
        (changed(**{"lambda": float("inf")}), ParameterError, "finite"),
        (changed(features=[]), ParameterError, "not empty"),
        (changed(features={"name": "a"}), ParameterError, "as a list"),
        (changed(features=DOCUMENT["features"] * 2), ParameterError, "twice"),
        (changed(features=[{"name": "y", "bounds": [0, 1]}]), ParameterError, "twice"),
        (changed(features=[{"name": "a", "bounds": [1, 1]}]), ParameterError, "'a' do not rise"),
        (changed(features=[{"name": "a", "bounds": [0]}]), ParameterError, "a list of 2 entries"),
        (changed(features=[{"name": "a"}]), SchemaError, "'bounds' in [[features]] 1 of the job is missing"),
        (changed(features=[{"name": "", "bounds": [0, 1]}]), ParameterError, "1 to 200 printable characters"),
        (changed(features=["a"]), ParameterError, "each entry a table"),
        (changed(parties=DOCUMENT["parties"][:4]), ParameterError, "fewer than 3 clients"),
        (changed(parties=DOCUMENT["parties"][:4], minimum_clients=2), ParameterError, "at least 3"),
        (changed(parties=DOCUMENT["parties"][1:]), ParameterError, "one evaluator"),
        (changed(protocol="secure-sum"), ParameterError, "no provider"),
        (with_party(3, name="c0"), ParameterError, "same name"),
        (with_party(3, role="boss"), ParameterError, "provider, evaluator, client"),
        (with_party(3, name=7), ParameterError, "1 to 200 printable characters"),
        (changed(minimum_rows=0), ParameterError, "'minimum_rows' in the job cannot be 0"),
        (
            changed(protocol="paper-masked", minimum_rows=0),
            ParameterError,
            "'minimum_rows' in the job cannot be 0",
        ),
        (
            changed(protocol="paper-masked", minimum_clients=0),
            ParameterError,
            "'minimum_clients' in the job cannot be 0",
        ),
        (changed(most_rows=29), ParameterError, "Set most_rows to 30"),
        (changed(most_rows=0), ParameterError, "most_rows is less"),
        (changed(most_rows=-5), ParameterError, "most_rows is less"),
        (changed(moments=True), ParameterError, "does not give them out"),
        (changed(protocol="delegated", moments=True), ParameterError, "lambda above 0 do not go together"),
        (changed(epsilon=1), ParameterError, "does not give them out"),
        *((without(key), SchemaError, key) for key in ("name", "target", "features", "parties")),
    ],
)
def test_a_mistake_in_the_job_is_named(document, error, said) -> None:
    with pytest.raises(error) as caught:
        Job.from_dict(document, WITH_PAPER)
    assert said in str(caught.value)


def test_a_short_key_is_for_the_paper_s_protocol_alone() -> None:
    job = Job.from_dict(changed(protocol="paper-masked", key_bits=1024), WITH_PAPER)
    assert job.key_bits == 1024
    with pytest.raises(ParameterError):
        Job.from_dict(changed(protocol="paper-masked", key_bits=512), WITH_PAPER)


def test_nothing_but_a_named_error_comes_of_any_wrong_value() -> None:
    odd = (None, 0, -1, 1.5, "", "x" * 300, "a\nb", [], [1], {}, {"name": 1}, True, float("nan"), b"x")
    for key in DOCUMENT:
        for value in odd:
            try:
                Job.from_dict(changed(**{key: value}), WITH_PAPER)
            except VeladoError:
                continue
    for value in odd[1:]:
        with pytest.raises(VeladoError):
            Job.from_dict(value, WITH_PAPER)  # type: ignore[arg-type]


def test_only_named_parties_are_found() -> None:
    job = Job.from_dict(DOCUMENT, WITH_PAPER)
    assert job.party("c1").role == "client"
    with pytest.raises(ParameterError, match="no party"):
        job.party("stranger")
