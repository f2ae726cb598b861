"""Generalization first k-member clustering: the source's tables, models and federated figures."""
