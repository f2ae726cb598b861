"""What a run gives back: to plain values and back, with an honest promise in both languages."""

import json

import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from velado.errors import SchemaError
from velado.learning.flower import FederatedFit, Federation, simulate
from velado.learning.flower.outcome import fit_files, report, rounds_frame, write_files
from velado.release.methods import DAS, Mondrian


@pytest.fixture(scope="module")
def fits(people):
    federation = Federation(clients=3, rounds=3)
    methods = {"k": (Mondrian(), 4), "original": (None, None), "measured": (DAS(), None)}
    return {
        name: simulate(people.table, people.schema, method, federation, k=k, target="outcome", engine="loop")
        for name, (method, k) in methods.items()
    }


def test_a_fit_comes_back_from_json_without_its_model(fits) -> None:
    fit = fits["k"]
    document = json.loads(json.dumps(fit.to_dict()))
    again = FederatedFit.from_dict(document)
    assert again.to_dict() == fit.to_dict() and again.learned is None
    assert (document["method"], document["k"], document["majority"]) == ("mondrian", 4, fit.majority)
    assert {"round", "accuracy", "auc", "loss", "asked", "replied", "applied", "gap"} <= set(
        document["rounds"][0]
    )


@pytest.mark.parametrize(
    "document", [{}, {"format": 2}, {"format": 1, "rounds": 3, "clients": []}, {"format": 1}]
)
def test_a_file_that_is_no_fit_is_refused(document) -> None:
    with pytest.raises(SchemaError, match="not a federated fit"):
        FederatedFit.from_dict(document)


def test_the_promise_says_what_is_guaranteed_measured_and_not_promised(fits) -> None:
    kinds = {name: fit.promise.type for name, fit in fits.items()}
    assert kinds == {"k": "guaranteed", "original": "measured", "measured": "measured"}
    for language, words in (("en", "no differential privacy"), ("pt", "não têm privacidade diferencial")):
        for fit in fits.values():
            assert any(words in text for text in fit.promise.to_dict()[language]["not_promised"])
        assert "k = 4" in fits["k"].promise.to_dict()[language]["guaranteed"][0]
        assert fits["original"].promise.guaranteed == ()
        assert fits["measured"].promise.guaranteed == ()
    assert fits["k"].promise.clients_checked == 3


def test_the_report_is_written_in_both_languages_and_shows_the_last_round(fits) -> None:
    fit = fits["k"]
    english, portuguese = report(fit), report(fit, "pt")
    assert f"{fit.rounds[-1].accuracy:.4f}" in english
    assert f"{fit.rounds[-1].accuracy:.4f}".replace(".", ",") in portuguese
    assert "## Not promised" in english and "## Não prometido" in portuguese
    assert "a round needs the answers of 3 clients" in english
    assert english.count("| client ") == 4 and len(english.splitlines()) == len(portuguese.splitlines())


def test_files_hold_the_rounds_and_the_model(fits, tmp_path) -> None:
    fit = fits["k"]
    assert rounds_frame(fit).height == 3
    for form in ("csv", "parquet"):
        write_files(tmp_path / form, fit_files(fit, "pt", form))
        names = {path.name for path in (tmp_path / form).iterdir()}
        assert names == {"fit.json", f"rounds.{form}", "report.md", "model.npz"}


def test_a_repr_shows_no_value_and_html_is_escaped(fits) -> None:
    assert repr(fits["k"]).startswith("FederatedFit(logistic on mondrian, 3 rounds, accuracy")
    assert "<table>" in fits["k"]._repr_html_()
