"""What a run says of itself is true of its protocol, in both languages, and the result's form lets nothing odd through."""

import json
from fractions import Fraction

import pytest

from velado.errors import ProtocolError, SchemaError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.parts import fit_of, result_bytes, result_in
from velado.learning.protocols.who_learns_what import learned, promise
from velado.learning.regression.fit import Fit, Solved
from velado.learning.regression.job import Job, Party
from velado.papers.regression.paper_masked import WITH_PAPER
from velado.text import told

PROTOCOLS = ("masked", "delegated", "delegated-to-client", "secure-sum", "paper-masked")


def a_job(protocol="delegated", **more) -> Job:
    parties = [Party("eva", "evaluator"), *(Party(f"c{i}", "client") for i in range(3))]
    if WITH_PAPER[protocol].provider is not None:
        parties.append(Party("pro", "provider"))
    if WITH_PAPER[protocol].client_holds_key:
        more = {"key_holder": "c1", **more}
    x, y = Bounded("x", (Fraction(0), Fraction(1))), Bounded("y", (Fraction(0), Fraction(1)))
    return Job("t", WITH_PAPER[protocol], (x,), y, tuple(parties), **more)


def test_masked_does_not_promise_to_hide_the_pooled_sums_from_its_evaluator() -> None:
    said = promise(a_job("masked"))
    assert said.hides.endswith("the pooled sums, from the provider and the clients")
    assert "to the evaluator" in said.reveals
    facts = learned(a_job("masked"))
    assert "pooled X'X and X'y" in facts.parties["evaluator"].infers
    assert "lattice reduction" in facts.parties["evaluator"].infers
    assert any("evaluator and all clients but one" in text for text in facts.coalitions)
    assert "reticulados" in facts.to_dict("pt")["parties"]["evaluator"]["infers"]


@pytest.mark.parametrize("protocol", ["delegated", "delegated-to-client", "secure-sum"])
def test_the_number_of_rows_and_standard_errors_are_said_to_be_told(protocol) -> None:
    plain, errors, noise = (
        a_job(protocol),
        a_job(protocol, moments=True),
        a_job(protocol, epsilon=Fraction(1)),
    )
    for job in (plain, errors, noise):
        reveals = promise(job).reveals
        assert "the pooled number of rows" in reveals
        assert ("standard errors" in reveals) == job.moments
        assert ("rows with noise" in reveals) == (job.epsilon is not None)
        seen = learned(job).parties
        assert "the pooled number of rows" in seen["client"].saw
        assert "the pooled number of rows" in seen["evaluator"].saw or protocol == "secure-sum"
        assert "número de linhas" in told(reveals, "pt")
    assert "number of rows" not in learned(a_job("masked")).parties["client"].saw


@pytest.mark.parametrize("protocol", ["delegated", "delegated-to-client", "secure-sum"])
def test_with_noise_nothing_is_said_that_exact_sums_alone_would_tell(protocol) -> None:
    job = a_job(protocol, epsilon=Fraction(1))
    said = json.dumps([learned(job).to_dict(), promise(job).to_dict()])
    assert "53 bits" not in said and "the exact pooled sums, from everyone" in said
    assert "pooled sums, from all but" not in said and "in the clear" not in said
    assert "own noise in it" in said
    plain = json.dumps(learned(a_job(protocol)).to_dict())
    assert ("53 bits" in plain) == (protocol != "delegated-to-client")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("language", ["en", "pt"])
def test_the_promise_is_spoken_in_sentences(protocol, language) -> None:
    noise = {"epsilon": Fraction(1, 2)} if WITH_PAPER[protocol].pooled else {}
    for job in (a_job(protocol), a_job(protocol, **noise)):
        lines = [told(line, language) for line in promise(job).lines()]
        assert lines
        for text in (*lines, json.dumps(learned(job).to_dict(language), ensure_ascii=False)):
            assert "{told}" not in text
        assert all(line[0].isupper() and line.endswith(".") and "{" not in line for line in lines)
        if language == "pt":
            assert not set(lines) & set(promise(job).lines())
    spoken = " ".join(told(line, language) for line in promise(a_job(protocol, **noise)).lines())
    assert ("epsilon 0.5 " in spoken) == bool(noise)


@pytest.mark.parametrize("protocol", ["secure-sum", "delegated"])
@pytest.mark.parametrize("family", ["linear", "logistic", "poisson"])
def test_who_adds_exact_sums_is_said_to_see_the_census_and_every_round(protocol, family) -> None:
    if family != "linear" and protocol != "secure-sum":
        return
    job = a_job(protocol, family=family)
    seen = learned(job).parties[job.protocol.pooled]
    assert "the census: how many pooled rows there are" in seen.saw and "small numbers too" in seen.saw
    assert "what the census counts, few as they may be" in seen.infers
    assert "the census" in promise(job).reveals
    assert ("in every round: deviance, gradient and curvature" in seen.saw) == (family != "linear")
    assert ("X'X" in seen.saw) == (family == "linear")
    said = learned(job).to_dict("pt")["parties"][job.protocol.pooled]
    assert "o censo" in said["saw"] and "por poucas que sejam" in said["infers"]
    assert ("em cada rodada" in said["saw"]) == (family != "linear")
    # With noise, and where every client counts its own rows, there is no pooled census.
    noisy = a_job(protocol, epsilon=Fraction(1), **({"family": family} if family == "logistic" else {}))
    assert "census" not in json.dumps([learned(noisy).to_dict(), promise(noisy).to_dict()])
    assert ("In every round" in learned(noisy).parties[job.protocol.pooled].saw) == (family == "logistic")
    for other in ("masked", "delegated-to-client"):
        assert "census" not in json.dumps([learned(a_job(other)).to_dict(), promise(a_job(other)).to_dict()])


def test_the_parts_that_are_held_out_are_said_to_be_seen() -> None:
    seen = learned(a_job("secure-sum", moments=True, path="lasso", folds=4)).parties["evaluator"]
    assert "each of the 4 parts" in seen.saw and "census" in seen.saw


def test_a_short_key_is_warned_of_wherever_the_promise_is_told() -> None:
    short = a_job("paper-masked", key_bits=1024)
    assert "1024 bits" in promise(short).key_warning
    assert "1024 bits" in learned(short).assumptions
    assert any("1024 bits" in told(line, "pt") for line in promise(short).lines())
    fit = fit_of(short, Solved(coefficients=(1.0, 2.0)))
    assert "1024 bits" in json.dumps(fit.to_dict())
    assert "key_warning" not in promise(a_job("paper-masked", key_bits=2048)).to_dict()


def test_a_promise_reads_back_as_it_was_written() -> None:
    for job in (a_job("masked"), a_job(epsilon=Fraction(1, 2)), a_job("paper-masked")):
        fit = fit_of(job, Solved(coefficients=(1.0, 2.0), inflation=(1.0, 3.0), facts={"rounds": 5.0}))
        assert Fit.from_dict(json.loads(json.dumps(fit.to_dict()))).to_dict() == fit.to_dict()


SOLVED = Solved(
    coefficients=(1.0, 2.0), errors=(0.5, 0.25), rows=40, inflation=(1.0, 1.5), facts={"r_squared": 0.5}
)


def result(**more) -> bytes:
    document = json.loads(result_bytes(SOLVED))
    return json.dumps({**document, **more}).encode()


def test_a_result_reads_back() -> None:
    assert result_in(result(), a_job(moments=True)) == SOLVED


@pytest.mark.parametrize(
    "more",
    [
        {"standard_errors": ["nan", "0x1p0"]},
        {"standard_errors": ["inf", "0x1p0"]},
        {"standard_errors": ["-0x1p0", "0x1p0"]},
        {"standard_errors": ["0x1p0"]},
        {"standard_errors": True},
        {"coefficients": ["nan", "0x1p0"]},
        {"coefficients": [True, False]},
        {"coefficients": ["0x1p99999", "0x1p0"]},
        {"rows": True},
        {"rows": 1.5},
        {"rows": -1},
        {"rows": 10**9},
        {"inflation": ["inf", "0x1p0"]},
        {"facts": {"r_squared": "nan"}},
        {"facts": {"r_squared": 1}},
        {"facts": {"another": "0x1p0"}},
        {"facts": []},
        {"more": 1},
    ],
)
def test_an_odd_result_is_refused(more) -> None:
    with pytest.raises(ProtocolError, match="no result"):
        result_in(result(**more), a_job(moments=True))


def test_standard_errors_nobody_asked_for_are_refused() -> None:
    with pytest.raises(ProtocolError, match="no result"):
        result_in(result(), a_job())


@pytest.mark.parametrize("value", [True, "1.5", None, float("nan"), float("inf"), 10**400, [1]])
@pytest.mark.parametrize("key", ["coefficients", "standard_errors"])
def test_a_model_with_anything_but_finite_numbers_is_refused(key, value) -> None:
    document = fit_of(
        a_job(moments=True), Solved(coefficients=(1.0, 2.0), errors=(0.1, 0.2), rows=40)
    ).to_dict()
    assert Fit.from_dict(document).standard_errors == (0.1, 0.2)
    with pytest.raises(SchemaError, match="not a model"):
        Fit.from_dict({**document, key: {"(intercept)": 1, "x": value}})
