"""Linear regression on Paillier-encrypted data: the source's protocol, attacks on it, its tables."""
