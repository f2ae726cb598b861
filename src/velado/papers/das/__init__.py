"""Dynamic anonymization by separatrices: the source's tables."""
