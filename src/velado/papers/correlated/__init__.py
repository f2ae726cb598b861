"""The source's correlated sensitivities, reproduced for science; nothing here protects anybody.

Mendonça 2018, "Uma abordagem de privacidade diferencial para dados correlacionados utilizando técnicas de agrupamento"
(definitions 5-11, algorithms 1-5), scales Laplace noise to a sensitivity that is computed from the private records. The scale, the clusters and the choices of BIC and RFE then tell
about the records, so no epsilon holds: every answer made here says ``{"type": "none"}``. Nothing of this package is
imported by what makes promises, it draws its own noise, and it refuses a table that has a ledger.

=============== =====================================================================
``records``     a table as numbers: ordinal codes, min-max scaling
``matching``    which rows a query asks about
``influence``   s_j, how far the removal of one row moves the answer
``ranks``       ranks within a record, distinct ones once
``spearman``    the baseline: |rho| over all pairs, in tiles
``density``     DBSCAN's clusters, without lists of neighbours
``dbscan``      approach 1: pairs within a cluster
``mixture``     approaches 2 and 3: how likely two rows share a Gaussian
``em, bic``     how many Gaussians BIC would take
``rfe``         approach 3's choice of columns
``approaches``  the four of them as frozen values
``laplace``     the noise, apart from the product's
``answer``      one query answered as in the source
=============== =====================================================================
"""
