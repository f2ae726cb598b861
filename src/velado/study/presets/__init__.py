"""Presets: who will get the table decides what is promised and what is done to its columns first.

A preset is one file here and its line in `PRESETS`, with the import that line needs. It decides nothing that a schema, a
goal and operations could not say; it says them, with a reason for each column, for a person to change.
"""

from velado.study.presets._preset import Decision as Decision
from velado.study.presets._preset import Preset as Preset
from velado.study.presets._preset import PresetPlan as PresetPlan
from velado.study.presets.public_download import PublicDownload as PublicDownload
from velado.study.presets.researchers import Researchers as Researchers
from velado.study.presets.safe_harbor import SafeHarbor as SafeHarbor

PRESETS: tuple[type[Preset], ...] = (PublicDownload, Researchers, SafeHarbor)
