"""NOISE: private answers over rows that may move together, with a budget that cannot be overspent."""
