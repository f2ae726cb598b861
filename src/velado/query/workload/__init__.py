"""Several counts for one charge: measured together where that is more exact than one by one, never where it is not.

`questions` reads what was written, `classes` cuts each column into values that no question tells apart, `strategy` finds which tables of counts to draw and how exact that
makes each answer, `workload` prices, draws and answers. Everything before the draw is a function of public things.
"""
