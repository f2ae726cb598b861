"""One linear regression over several owners' rows: the job, the sums, the fit and what it says."""
