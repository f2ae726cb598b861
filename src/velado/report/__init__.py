"""One set of facts, many views: what is known of a release as page, Markdown, JSON, manifest and ten lines.

`facts` is what every view is made from, `blocks` and `charts` are the kit of parts, `render` shows a page of them as
HTML, Markdown or JSON in the language spoken. `release_page` puts a release into words, `terminal` into ten lines,
`manifest` into what leaves with the table; `phrases` names the codes of other rooms. Studies use the same kit.
"""
