"""A coordinator cannot send code to a hospital: its SuperNode takes velado's own app, byte for byte, and ends at any other."""

import warnings
import zipfile
from io import BytesIO

import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")
from flwr.cli.build import build_fab_from_files

from velado.errors import ProtocolError
from velado.learning.flower.deployment import APP_FILES, APP_PROJECT
from velado.learning.flower.supernode import check_app

OWN = {"pyproject.toml": APP_PROJECT, **APP_FILES}
CLIENT = "velado_app/client_app.py"


def packed(files: dict[str, str]) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Flower's, about a library of its own
        return build_fab_from_files({name: text.encode() for name, text in files.items()})[0]


def test_the_app_that_velado_writes_is_taken_as_flower_packs_it() -> None:
    assert check_app(packed(OWN)) is None


@pytest.mark.parametrize(
    "files",
    [
        {**OWN, CLIENT: "import os\n" + OWN[CLIENT]},
        {**OWN, "velado_app/more.py": ""},
        {**OWN, "velado.py": "app = None\n"},  # would stand before the installed package
        {
            **OWN,
            "pyproject.toml": APP_PROJECT.replace("velado_app.client_app:app", "velado_app.server_app:app"),
        },
        {**OWN, "pyproject.toml": APP_PROJECT.replace("dependencies = []", 'dependencies = ["x"]')},
        {name: text for name, text in OWN.items() if name != "velado_app/__init__.py"},
    ],
)
def test_any_other_app_is_refused(files: dict[str, str]) -> None:
    with pytest.raises(ProtocolError, match="another app than velado's"):
        check_app(packed(files))


def test_a_second_entry_of_the_same_name_a_bomb_and_rubbish_are_refused() -> None:
    for change in ("twice", "bomb", "cut"):
        held = BytesIO(packed(OWN))
        if change != "cut":
            with zipfile.ZipFile(held, "a", zipfile.ZIP_DEFLATED) as more, pytest.warns(UserWarning):
                more.writestr(CLIENT, OWN[CLIENT] if change == "twice" else "#" * (1 << 20))
        data = held.getvalue()[:200] if change == "cut" else held.getvalue()
        with pytest.raises(ProtocolError, match="another app than velado's"):
            check_app(data)
