"""Decide with evidence: methods, k and models on the user's own table, with risk, loss and quality side by side.

A study is one recipe in five sections (data, anonymization, models, metrics, analyses) and, where models are also trained
across clients, a sixth (federated): `study_settings`. `load` brings in the table and refuses what no cell could be computed
from, `_study_grid` lists the cells, `protocols` says how rows are split and tested, `_work` computes one release with
everything that is asked of it and one run across clients, `study_run` does that on all cores and resumes, `analysis` sums
up, `_matched` compares methods at the same risk, `_advice` says it in words, and `study_outcome` holds the facts that every view
(`page`, Markdown, terminal, JSON) is made from.
"""
