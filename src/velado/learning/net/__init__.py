"""What carries the messages of a job between real parties: the only part of `encrypted` that touches files and sockets.

`wire` turns a message into versioned bytes and back, `envelope` signs them, `tls` pins certificates, `server` and
`sender` are the two ends of HTTPS with mutual TLS, `inbox` decides what is let in, `journal` keeps what a killed party
needs to go on, `runner` runs one role to its end, `outputs` writes what it may know. `identity` holds a party's keys.
"""
