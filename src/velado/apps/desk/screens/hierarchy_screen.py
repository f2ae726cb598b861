"""Hierarchies: how the values of a column become broader."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
