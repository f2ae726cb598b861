"""Numbers a method or a guarantee is given: finite and of a size that can be computed with, whoever gives them."""

import pytest

from velado.errors import ParameterError
from velado.release.guarantees.recursive_l_diversity import RecursiveLDiversity
from velado.release.methods import method_named
from velado.release.parameters import LARGEST, check_parameters, part_from


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_refused(number: float) -> None:
    with pytest.raises(ParameterError, match="'c' in here is not a finite number"):
        part_from(RecursiveLDiversity, {"c": number, "l": 2}, "here")


def test_a_method_built_by_hand_is_held_to_the_same_limit() -> None:
    kind = method_named("mdav")
    with pytest.raises(ParameterError, match="'block' of mdav is too large"):
        check_parameters(kind(block=LARGEST + 1))  # type: ignore[call-arg]
    check_parameters(kind(block=LARGEST))  # type: ignore[call-arg]


@pytest.mark.parametrize("number", [2**63, 10**400])
def test_a_whole_number_beyond_every_kernel_is_refused(number: int) -> None:
    for kind, key in (
        (method_named("mdav"), "block"),
        (RecursiveLDiversity, "c"),
        (RecursiveLDiversity, "l"),
    ):
        with pytest.raises(ParameterError, match=f"'{key}' in here is too large"):
            part_from(kind, {"c": 2.0, "l": 2, key: number} if key != "block" else {"block": number}, "here")
    assert part_from(method_named("mdav"), {"block": LARGEST}, "here").block == LARGEST
