"""The settings of a federation: limits, how many must answer, and answers to misspelt names."""

import pytest

from velado.errors import ParameterError, SchemaError
from velado.learning.flower import Federation


@pytest.mark.parametrize(
    ("participation", "clients", "needed"),
    [(0.8, 10, 8), (0.75, 10, 8), (1.0, 3, 3), (0.01, 5, 1), (0.7, 10, 7)],
)
def test_the_clients_a_round_needs_are_rounded_up(participation: float, clients: int, needed: int) -> None:
    assert Federation(participation=participation, clients=clients).needed == needed


def test_at_least_as_many_are_asked_as_must_answer() -> None:
    assert Federation(clients=10, participation=0.5, fraction=0.55).asked == 6
    with pytest.raises(ParameterError, match="Fewer clients would be asked than must answer"):
        Federation(participation=0.8, fraction=0.5)


@pytest.mark.parametrize(
    "settings",
    [
        {"clients": 0},
        {"rounds": 0},
        {"participation": 0.0},
        {"participation": 1.1, "fraction": 1.0},
        {"test_share": 1.0},
        {"test_share": 0.0},
        {"alpha": 0.0},
        {"clients": True},
        {"rate": "fast"},
        {"bagging": "median"},
    ],
)
def test_a_setting_outside_its_limits_is_refused(settings: dict) -> None:
    with pytest.raises(ParameterError):
        Federation(**settings)


def test_a_misspelt_model_split_or_key_is_answered_with_the_nearest() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'logistic'"):
        Federation(model="logistics")
    with pytest.raises(ParameterError, match="Did you mean 'dirichlet'"):
        Federation(split="dirichlt")
    with pytest.raises(SchemaError, match="Did you mean 'participation'"):
        Federation.from_dict({"particpation": 0.8})


def test_settings_come_back_from_plain_values() -> None:
    federation = Federation(model="xgboost", clients=4, alpha=2.0)
    assert Federation.from_dict(federation.to_dict()) == federation
    assert Federation.from_dict({"fraction": 1, "alpha": 2}).fraction == 1.0
