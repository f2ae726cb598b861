"""The report: pieces of a run -> one plain dict (`summarize`) -> HTML, Markdown, JSON.

Renderers see nothing but the dict. `words` holds every text in English and Portuguese, `charts` draws.
"""
