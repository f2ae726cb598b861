"""What the search of `progressive` may lower: each objective is one file, and a line in `mixture`.

`least_penalty` (ncp), `least_variance` (sse), `smallest_groups` (discernibility) and `faithful_margins` (marginals): each
says what a group costs after a change, for compiled code, and what published groups are worth, as `velado measure` does.
"""
