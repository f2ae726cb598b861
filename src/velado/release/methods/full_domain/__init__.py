"""Full-domain generalization: one level a column, the best node of the lattice that keeps the promise."""
