"""The evidence pack: what is known of a release, for who must check it without the table's owner.

`figures` are what a run keeps of its measures, `document` brings them together with the manifest, a fresh count of the published
table and what people state; `pages` shows the document, `laws` adds what one law asks, `archive` and `signature` make one
signed file of all. A pack is a function of its document: who checks one makes it again and compares bytes.
"""
