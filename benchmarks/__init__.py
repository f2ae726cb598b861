"""Benchmarks: one file per question. `python -m benchmarks` runs them all, `python -m benchmarks NAME` one.

A peer runs in the same process tree on the same data with the same settings, and the figure is the ratio.
A bar that is missed is printed as missed.
"""
