"""A whole table from one spend: rows drawn from noisy counts, so that no row is anybody's.

`axes` are the declared cells of each column (never read off the rows), `junction_tree` and `fit` hold the distribution that agrees
best with what was measured, `measuring` chooses and measures under a budget, `sampling` draws rows, `microaggregate` is the other way:
averages of groups formed in a fixed order. `synthesize` pays, looks, draws, records, in this order.
"""
