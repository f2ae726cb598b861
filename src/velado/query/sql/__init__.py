"""The subset of SQL we answer: read, every clause checked, every refusal with its reason."""
