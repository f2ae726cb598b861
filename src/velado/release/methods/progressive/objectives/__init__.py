"""What the search of `progressive` may lower.

`least_penalty` (ncp), `least_variance` (sse), `smallest_groups` (discernibility) and `faithful_margins` (marginals): each
says what a group costs after a change, for compiled code, and what published groups are worth, as `velado measure` does.

Another one is a file here, and two lines in `mixture`: its place in `OBJECTIVES`, and what `cost_after` charges for it, which compiled
code cannot look up. What that reads beyond covers and sizes is a field of `Ingredients`. The measure of the same name stands in
`measures/utility`. Flags, help, the price of a dropped row and the columns of `velado compare` follow from the class. The tests of
objectives go through `OBJECTIVES` and name what lacks.
"""
