"""The steward's desk: a local page on which a table becomes a signed release, without a terminal.

What its members share: nothing here decides about privacy. A screen shows what the rooms below found and edits the
recipe of the project (`project`, `answers`); work on rows is done by processes of their own (`jobs`, `worker`), which call
what the command line calls; `profile` keeps what a table looks like; `walk` says which questions are still open; the screens
are in `screens`; `door` lets requests in, `desk_app` puts the parts together, `desk_server` runs them.
"""
