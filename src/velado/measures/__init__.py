"""What it cost, what it bought: utility and risk of a release, measured on the published values.

`measured.measure` takes a release, `measured.measure_files` an original table and a published one; both give
`Scores`. `published` reads a published table back against the original schema without trusting anything that
made it. `utility` holds what was lost, `risk` what an attacker can still do, `models` what can still be learnt.
`measure_registry` lists those that are one number, each a `Measure` at the end of its own file: lines, JSON, reports and
studies read them there.
"""
