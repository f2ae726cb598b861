"""What the search of `progressive` may lower.

`least_penalty` (ncp), `least_variance` (sse), `smallest_groups` (discernibility) and `faithful_margins` (marginals): each
says what a group costs after a change, for compiled code, and what published groups are worth, as `velado measure` does.

Another one is a file here; in `mixture` its place in `OBJECTIVES`, in `cost_after` and in `dropped`; the measure of the same name
in `measures/utility`; and a column of the trade-off that `velado compare --objectives` shows. The tests of objectives go through
`OBJECTIVES` and name what lacks.
"""
