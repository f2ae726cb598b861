"""The source's correlated sensitivities, reproduced for science; nothing here protects anybody.

Mendonça 2018, "Uma abordagem de privacidade diferencial para dados correlacionados utilizando técnicas de agrupamento"
(definitions 5-11, algorithms 1-5), scales Laplace noise to a sensitivity that is computed from the private records. The
scale, the clusters and the choices of BIC and RFE then tell about the records, so no epsilon holds: every answer made
here says ``{"type": "none"}``. Nothing of this package is imported by what makes promises, it draws its own noise, and
it refuses a table that has a ledger.

====================== ==========================================================================================
``correlated_records`` a table as numbers: ordinal codes, min-max scaling; the data sets, random COUNT queries
``rank_correlation``   ranks within a record, |rho| over all pairs in tiles, what one row does to an answer, RFE
``mixture_em``         how many Gaussians BIC would take
``approaches``         the four ways to say which records move together, as settings
``correlated_answer``  one query answered as in the source, with noise apart from the product's
``correlated_tables``  the figures and tables again
====================== ==========================================================================================
"""
