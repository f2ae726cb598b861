"""The report of a federated run: one language from top to bottom, and honest about what was scored."""

import re
from dataclasses import replace

import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from velado.learning.flower import FederatedFit, Federation, FederationStopped, simulate
from velado.learning.flower.outcome import report


@pytest.fixture(scope="module")
def stopped(people) -> FederatedFit:
    federation = Federation(clients=5, rounds=6, dropout=0.6, unmet=2, participation=0.6)
    with pytest.raises(FederationStopped) as raised:
        simulate(people.table, people.schema, None, federation, target="outcome", engine="loop")
    assert raised.value.fit is not None
    return raised.value.fit


def test_a_portuguese_report_says_in_portuguese_what_is_missing(stopped: FederatedFit) -> None:
    english, portuguese = report(stopped), report(stopped, "pt")
    assert "the round was not applied" in english and "| client 1 |" in english
    assert "a rodada não foi aplicada" in portuguese and "| cliente 1 |" in portuguese
    assert portuguese.startswith("# Regressão logística federada com linhas originais\n")
    assert "A federação parou na rodada" in portuguese
    odd = re.findall(r"\b(?:client|Round|round|replied|needed|Missing|Without|answer|not|the)\b", portuguese)
    assert odd == []


def test_the_clients_a_round_needs_are_those_the_federation_counts(stopped: FederatedFit) -> None:
    # 0.07 x 100 is 7.000000000000001 in floating point: seven clients are needed, and eight are not.
    federation = Federation(clients=100, participation=0.07)
    how = replace(stopped.how, federation=federation.to_dict())
    fit = replace(stopped, how=how, clients_asked=100)
    assert federation.needed == 7 and "needs the answers of 7 clients" in report(fit)


def test_rounds_scored_on_other_rows_are_marked(stopped: FederatedFit) -> None:
    assert "held-out rows |" not in report(stopped)
    first = replace(stopped.rounds[0], test_rows=7)
    fit = replace(stopped, rounds=(first, *stopped.rounds[1:]))
    assert re.search(r"^\| 1 \|.*\| 7 \|$", report(fit), flags=re.M)
    assert "Not every round was scored on the same rows" in report(fit)
    assert "Nem toda rodada foi avaliada nas mesmas linhas" in report(fit, "pt")
