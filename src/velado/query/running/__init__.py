"""Running totals over deliveries: the binary-tree mechanism, paid once for a declared number of releases."""
