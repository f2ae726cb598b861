"""Progressive: groups grown over a lattice of covers, peeled and pooled under a bound."""
