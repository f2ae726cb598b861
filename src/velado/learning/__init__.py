"""Secrets between several: parties fit one regression over all their rows, and none sees another's.

`crypto` holds the arithmetic (Paillier, fixed point, packing, key files), `protocols` the roles as pure state
machines, `net` what carries their messages. Only `net` touches files or the network.
"""
