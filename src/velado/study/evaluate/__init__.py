"""Decide with evidence: methods, k and models on the user's own table, with risk, loss and quality side by side.

A study is one recipe in five sections (data, anonymization, models, metrics, analyses). `recipe` reads it, `grid` lists
its cells, `protocols` says how rows are split and tested, `work` computes one release with everything that is asked of
it, `run` does that on all cores and resumes, `analysis` sums up and `advice` says it in words.
"""
