"""A table that stays where it lies: judged from a sample and exact counts, encoded as counted tuples, released, checked.

The same rules as for a table in memory, in the same order: `source_check` settles identifiers, people and side doors,
`source_tuples` brings the distinct values and tuples and codes them, `source_release` runs the method on them and says what
is published for each, and `source_written` counts what was written and lets the guarantees read those counts. `source_verify`
does the last to somebody else's table, `source_inspect` proposes a schema for one that has none. `source_plan` chooses how a
table is grouped, `source_cut` cuts by histograms first one whose rows hardly repeat.
"""
