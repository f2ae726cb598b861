"""The page of a study: one self-contained HTML file to decide from. `render(study, language)` makes it.

Charts are finished SVG and stand in the file; the script in it only shows, hides, sorts and saves what is there, so that
without a script nothing but comfort is missing. Nothing is loaded from anywhere, and no cell of the table is shown.
"""

from velado.study.evaluate.page.render_page import render, render_document

__all__ = ["render", "render_document"]
