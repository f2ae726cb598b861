"""Streams: windows of records that arrive without end, each published as a table with a promise.

The core is a function, `(state, records, clock) -> (windows, state)` (`windows.advance`): it opens no file and reads no clock. What
arrives becomes records in `records`, a person's records of a window one row in `units`, and a window goes out through the same door as
any table in `window_release`. `manifest` chains the windows. The edges, which read brokers and files and remember where they were, are
in `connectors`.
"""
