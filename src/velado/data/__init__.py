"""What we have: tables, what their columns mean, and the arrays every method works on.

Members share one idea of the data: a `Table` is a frame plus a `Schema`; `encode` turns its
quasi-identifiers into ordered codes; a `Partition` says which row is in which group; `GroupCounts` is all a
guarantee may see.
"""
