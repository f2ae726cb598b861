"""The experiments of the papers velado is built on, each by name: what was published, what we get, what it promises.

`registry` lists them and says how one is run and shown; the other modules hold them, one paper or kind of experiment each.
"""
