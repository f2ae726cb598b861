"""Mondrian: cut where it helps most, as long as both halves keep the promise."""
