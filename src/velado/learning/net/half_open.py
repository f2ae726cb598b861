"""How many connections one address may hold while it has not yet said anything whole."""

from __future__ import annotations

import ipaddress
import threading


class HalfOpen:
    """At most *most* places for each network; a connection holds one from its first byte or none to its whole request.

    Without it, one address could take every connection a listener has by opening them and saying nothing, for as long as its
    time limits allow, and begin again. Counts are dropped at 0, so memory follows what is open.

    >>> places = HalfOpen(1)
    >>> places.take("10.0.0.1"), places.take("10.0.0.1")
    (True, False)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}

    def take(self, network: str) -> bool:
        """Whether there was a place, which is then taken."""
        with self._lock:
            held = self._held.get(network, 0)
            if held >= self._most:
                return False
            self._held[network] = held + 1
            return True

    def free(self, network: str) -> None:
        """A place that was taken is there again."""
        with self._lock:
            left = self._held.pop(network) - 1
            if left:
                self._held[network] = left


def network_of(address: str) -> str:
    """By what a caller is counted: an IPv4 address, the /64 of an IPv6 address (one line has them all), else the text itself.

    >>> network_of("2001:db8::1"), network_of("::ffff:10.0.0.1")
    ('2001:db8::/64', '10.0.0.1')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
