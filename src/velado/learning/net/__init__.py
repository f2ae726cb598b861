"""What carries the messages of a job between real parties: the only part of the regression that touches files and sockets.

`_wire` turns a message into signed, versioned bytes and back, `_mutual_tls` pins certificates, `_https` has the two ends of
HTTPS (the evaluator listens, all others call), `_line` the evaluator's boxes and the callers' errands, `_journal` decides what
is let in and keeps what a killed party needs to go on, `runner` runs one role to its end, `outputs` writes what it may
know. `identity` holds a party's keys, `job_register` the jobs it took part in, `scoring` the files of encrypted prediction.
"""
