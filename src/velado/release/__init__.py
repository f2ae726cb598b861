"""Crowds: hide each person among others, publish, and prove it on the published values.

Members share one flow: a *method* turns an encoded table into a `Recoded` table, `release` regroups the
recoded values, counts, lets the *guarantees* read the counts, and raises when the promise does not hold.
"""

DEFAULT_METHOD = "progressive"
"""The method nobody had to choose. It stands here because the command line reads it before anything heavy is loaded."""
