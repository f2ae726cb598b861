"""Compare: methods and several k as a chart and a table of loss and risk; a click chooses."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
