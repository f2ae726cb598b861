"""Questions over HTTP: an API for programs and a page for people, both in front of `velado.query.session`.

What its members share: nothing here looks at a row, draws noise or decides about budget; a request is checked
(`connection_guard`, `web_app`, `tokens`), handed to a data set's session (`analyst_api`, `hosted_datasets`)
in its turn, and its outcome counted (`service_metrics`) and written down (`analyst_service`). Every error is
three sentences and a code (`problems`), and depends on the request, the settings and the ledger alone.
`service_settings` reads service.toml, `web_app` puts the parts together, `web_server` runs them.
"""
