"""The arithmetic of encrypted regression: numbers in, numbers and bytes out, no files and no network.

`keys` makes and checks Paillier keys; `obfuscators` makes the random factors that hide a plaintext; `paillier` encrypts,
adds and decrypts; `fixed_point` turns bounded real values into whole numbers; `packing` puts several of them in one
plaintext; `validation` checks and carries what arrives; `keyfile` seals a private key under a passphrase; `cost` counts
operations and measures what one costs; `modular` and `integer_products` are the fast loops below them.
"""
