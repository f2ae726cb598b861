"""What several releases of the same people say together: candidates, certain values, and classes for life.

`classes` holds people together from release to release; `candidates` counts what is left of a crowd for who has all releases;
`certain` says which sensitive values follow. All are functions of their arguments.
"""
