"""One run, from recipe to report: read, anonymize, measure, summarize, render, write."""
