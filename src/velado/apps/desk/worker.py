"""The process of one job: `python -m velado.apps.desk.worker FOLDER`. It calls what the command line calls.

What it was asked stands in `job.json`; how far it is, and how it ended, it writes beside it (`velado.apps.desk.jobs`).
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from velado.apps.desk.wording import error_at_the_desk
from velado.data.staging import put_file
from velado.errors import TableError, VeladoError
from velado.text import LANGUAGES, Language, say, told

_PROGRESS_EVERY = 0.2
_WATCH_EVERY = 0.25


class Reporter:
    """Progress on the disk, a few times a second at most."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "progress.json"
        self._last = 0.0

    def __call__(self, share: float, doing: str = "") -> None:
        moment = time.monotonic()
        if share < 1.0 and moment - self._last < _PROGRESS_EVERY:
            return
        self._last = moment
        whole = self._file.with_suffix(".new")
        whole.write_text(json.dumps({"share": share, "doing": told(doing)}))
        os.replace(whole, self._file)


def main(arguments: list[str]) -> int:
    """The job in the folder named is done, and its folder says how it ended."""
    folder = Path(arguments[0])
    asked = json.loads((folder / "job.json").read_bytes())
    _watch(folder, int(asked.get("memory", 0)))
    try:
        result = _work(folder, asked)
    except VeladoError as error:
        _fail(folder, error, asked["language"])
        return error.exit_code
    except MemoryError:
        _fail(folder, _too_large(), asked["language"])
        return 1
    except OSError as error:
        if error.errno is None:
            raise
        _fail(
            folder,
            VeladoError(
                say(
                    "The work stopped because the system refused a file ({reason}).",
                    reason=error.strerror or "",
                ),
                "What was begun is not used, and nothing half-written is kept.",
                "Make room on the disk or check the permissions, then start it again.",
            ),
            asked["language"],
        )
        return 1
    put_file(
        folder / "result.json", json.dumps(result, ensure_ascii=False, default=str).encode(), private=True
    )
    return 0


def _work(folder: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    from velado.text import speaking

    with speaking(asked["language"]):
        if asked["kind"] == "profile":
            from velado.apps.desk import profile

            place = Path(asked["profile"])
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            profile.make(Path(asked["source"]), asked["reading"], place)
            return {}
        if asked["kind"] == "copy":
            from velado.apps.desk.databases import copy_table

            copy_table(asked["place"], asked["table"], Path(asked["target"]))
            return {}
        if asked["kind"] == "preset":
            from velado.apps.desk.previewing import planned

            return planned(asked)
        if asked["kind"] == "release":
            return _release(folder, asked)
        if asked["kind"] == "compare":
            from velado.apps.desk.comparing import compared

            return compared(folder, asked, Reporter(folder))
        raise ValueError(asked["kind"])


def _release(folder: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    from velado.apps.desk.run_shown import shown
    from velado.data.io import read_table
    from velado.study.run import apply_recipe, read_recipe

    # As the recipe's file stood when the run was begun; the command line reads the same bytes.
    put_file(folder / "recipe.toml", asked["recipe_text"].encode(), private=True)
    recipe = read_recipe(folder / "recipe.toml")
    source: Any = Path(asked["source"])
    if asked.get("sheet"):
        source = read_table(source, sheet=asked["sheet"])
    published = apply_recipe(
        recipe, source, folder / "out", force=True, key=asked.get("key"), progress=Reporter(folder)
    )
    return shown(published, folder)


def _fail(folder: Path, error: VeladoError, tongue: Language) -> None:
    del tongue
    sentences = {
        key: {one: told(said, one) for one in LANGUAGES}
        for key, said in zip(("what", "why", "fix"), error_at_the_desk(error), strict=True)
    }
    choices = error.choices if isinstance(error, TableError) else ()
    document = {**sentences, "kind": type(error).__name__, "choices": choices}
    put_file(folder / "error.json", json.dumps(document, ensure_ascii=False).encode(), private=True)


def _too_large() -> VeladoError:
    return VeladoError(
        "The work needed more memory than it may have, and was stopped.",
        "The machine must stay usable; nothing half-written is kept.",
        "Close other programs, start the desk with a larger --memory, or use the command line with an engine.",
    )


def _watch(folder: Path, most: int) -> None:
    """A thread ends this process if it holds more than *most* bytes, and says so."""
    status = Path("/proc/self/statm")
    if not most or not status.exists():
        return
    page = os.sysconf("SC_PAGE_SIZE")

    def watch() -> None:
        while True:
            if int(status.read_text().split()[1]) * page > most:
                _fail(folder, _too_large(), "en")
                os._exit(1)
            time.sleep(_WATCH_EVERY)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
