"""Presets: who will get the table decides what is promised and what is done to its columns first.

A preset is one file here and one line in `PRESETS`. It decides nothing that a schema, a goal and operations could not
say; it says them, with a reason for each column, for a person to change.
"""

from velado.study.presets._preset import Decision, Preset, PresetPlan
from velado.study.presets.public_download import PublicDownload
from velado.study.presets.researchers import Researchers
from velado.study.presets.safe_harbor import SafeHarbor

PRESETS: tuple[type[Preset], ...] = (PublicDownload, Researchers, SafeHarbor)

__all__ = ["PRESETS", "Decision", "Preset", "PresetPlan", "PublicDownload", "Researchers", "SafeHarbor"]
