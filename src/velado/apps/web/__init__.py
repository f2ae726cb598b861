"""Questions over HTTP: an API for programs and a page for people, both in front of `velado.query.session`.

What its members share: nothing here looks at a row, draws noise or decides about budget; a request is checked
(`gate`, `tokens`, `limits`), handed to a data set's session (`shelf`), and its outcome counted (`metrics`) and written
down (`audit`). Every error is three sentences and a code (`failures`), and depends on the request, the settings and
the ledger alone. `settings` reads service.toml, `app` puts the parts together, `server` runs them.
"""
