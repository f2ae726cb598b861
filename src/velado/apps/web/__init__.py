"""What the pages of the service and of the desk share: headers that keep a browser safe, templates, the language asked for.

What its members share: nothing here knows what a page is about. `page` has the parts of every page and reply.
"""
