"""A folder as a sink: a table and a manifest for each window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from velado.data.staging import write_file
from velado.errors import OutputError
from velado.release.stream.connectors.connector import Place, SinkKind
from velado.release.stream.connectors.state_file import Parcel
from velado.settings import Setting, settings
from velado.text import say


@settings(section="sink")
class Folder(SinkKind):
    """Files of a folder.

    >>> Folder().path
    'windows'
    """

    name: ClassVar[str] = "folder"
    path: Annotated[str, Setting("where a table and a manifest of each window are written", items=1)] = (
        "windows"
    )

    def open(self, place: Place) -> FolderSink:
        """The folder, made where there is none."""
        return FolderSink(place.folder / self.path)


class FolderSink:
    """`000001.csv` and `000001.json` for each window, written whole; the manifest last, so that it never lacks its table."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def deliver(self, parcels: Sequence[Parcel], position: Any) -> None:
        """The files of the windows stand in the folder; one that stands there with other content is an error."""
        for parcel in parcels:
            self._written(parcel)

    def _written(self, parcel: Parcel) -> None:
        parts = [(".csv", parcel.table), (".json", parcel.manifest)]
        for ending, data in parts:
            path = self._folder / f"{parcel.number:06d}{ending}"
            if data is None:
                continue
            if not path.exists():
                write_file(path, data)
            elif path.read_bytes() != data:
                raise OutputError(
                    say("'{file}' stands in the folder of windows with other content.", file=path.name),
                    "It is of another stream, or was changed after it was published.",
                    "If these windows left, put back the state that knows of them; a new stream takes a folder of its own, and begins after the epoch.",
                )

    def close(self) -> None:
        """Nothing to close."""
