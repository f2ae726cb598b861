"""What a release lost: certainty, truth, class sizes, distributions.

`ncp` charges every value for what it covers, `false_cells` counts values that are not true of their person,
`discernibility` and `average_group_size` look at class sizes only, `within_variance` at the spread inside classes,
`distribution` at each column's shape and `marginals` at one- and two-way tables.
"""
