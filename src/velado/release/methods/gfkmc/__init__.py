"""Generalization first k-member clustering: its phases, and the kernels they run on."""
