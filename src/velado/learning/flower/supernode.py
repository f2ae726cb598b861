"""A hospital's SuperNode: Flower's own, which runs the one app it has installed and no code that a coordinator sends.

    python -m velado.learning.flower.supernode --superlink HOST:PORT ...      (the flags of flower-supernode)

Flower is built to send the app of a run to every SuperNode, which unpacks and runs it: whoever runs the SuperLink could
run what it likes beside the rows. Here what comes is compared with the app that this velado would have written, file by
file, before anything of it is kept. Another one ends the SuperNode with an error; the three lines that remain name the velado
of this machine. Nothing else that is sent is code: arrays are read without pickles, and libraries are not installed at run time.
"""

from __future__ import annotations

import os
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from typing import Any

from velado.errors import MissingExtra, ProtocolError, VeladoError
from velado.learning.flower.deployment import APP_FILES, APP_PROJECT, require_flower

_SETTINGS, _LIST = "pyproject.toml", ".info/CONTENT"
_LARGEST = 1 << 16


def check_app(content: bytes) -> None:
    """Nothing, if *content* is velado's own app as Flower packs it; ProtocolError else. Nothing of it is unpacked to a disk.

    >>> check_app(b"")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ProtocolError: The coordinator sent another app than velado's...
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as packed:
            entries = packed.infolist()
            small = all(entry.file_size <= _LARGEST for entry in entries)
            files = {entry.filename: packed.read(entry) for entry in entries} if small else {}
        listed = files.pop(_LIST, None)
        settings = tomllib.loads(files.pop(_SETTINGS, b"").decode())
    except (ValueError, KeyError, OSError, NotImplementedError, RuntimeError, zipfile.BadZipFile):
        raise _stranger() from None
    own = {name: text.encode() for name, text in APP_FILES.items()}
    # Flower writes the settings anew: they are compared by what they say, and the number of entries leaves room for no second one.
    if (
        listed is None
        or len(entries) != len(own) + 2
        or files != own
        or settings != tomllib.loads(APP_PROJECT)
    ):
        raise _stranger()


def _stranger() -> ProtocolError:
    return ProtocolError(
        "The coordinator sent another app than velado's.",
        "Its code would run beside the rows of this hospital; it was not unpacked.",
        "Ask the coordinator, who starts app/ of the folder velado wrote, with the same version of velado.",
    )


def keep_to_own_app() -> list[VeladoError]:
    """From here on a SuperNode of this process takes velado's app alone; MissingExtra where Flower has no such place any more.

    Returns the list in which a refusal will stand: Flower only logs the error that ends its loop.

    >>> keep_to_own_app()
    []
    """
    require_flower()
    flower = import_module("flwr.supernode.start_client_internal")
    connect = vars(flower).get("http_request_response")
    start = vars(flower).get("_init_connection")
    # contextmanager keeps the function it wraps; what that calls by name is what is put in place below.
    called = getattr(getattr(start, "__wrapped__", None), "__code__", None)
    if connect is None or called is None or "http_request_response" not in called.co_names:
        raise _other_flower()
    refused: list[VeladoError] = []
    vars(flower)["http_request_response"] = _checking(connect, refused)
    return refused


def _checking(connect: Callable[..., Any], refused: list[VeladoError]) -> Callable[..., Any]:
    @contextmanager
    def connected(*arguments: Any, **named: Any) -> Iterator[Any]:
        with connect(*arguments, **named) as calls:
            places = [at for at, call in enumerate(calls) if getattr(call, "__name__", "") == "get_fab"]
            if len(places) != 1:
                refused.append(_other_flower())
                raise refused[-1]
            at = places[0]
            yield (*calls[:at], _checked(calls[at], refused), *calls[at + 1 :])

    return connected


def _checked(get_fab: Callable[[str, int], Any], refused: list[VeladoError]) -> Callable[[str, int], Any]:
    def get_own(fab_hash: str, run_id: int) -> Any:
        fab = get_fab(fab_hash, run_id)
        try:
            check_app(fab.content)
        except VeladoError as error:
            refused.append(error)
            raise
        return fab

    return get_own


def _other_flower() -> MissingExtra:
    return MissingExtra(
        "This version of Flower is another one than velado knows.",
        "Whether it runs only this machine's own code could not be made sure.",
        'Install the tested one with pip install "velado[federated]".',
    )


def main() -> int:
    """Flower's SuperNode runs until it is ended; an app that is not ours ends it with exit code 1."""
    refused: list[VeladoError] = []
    try:
        refused = keep_to_own_app()
        import_module("flwr.supernode.cli.flower_supernode").flower_supernode()
    except VeladoError as error:
        refused.append(error)
    for first in refused[:1]:
        sys.stderr.write(f"{first.what} {first.why} {first.fix}\n")
    return int(bool(refused))


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # the thread in which Flower serves its own app would keep the process for ever
