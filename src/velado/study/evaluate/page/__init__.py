"""The page of a study: one self-contained HTML file to decide from (`to_html`), and the same in Markdown (`to_markdown`).

Charts are finished SVG and stand in the file; the script in it only shows, hides, sorts and saves what is there, so that
without a script nothing but comfort is missing. Nothing is loaded from anywhere, and no cell of the table is shown.
"""

from velado.study.evaluate.page._render_page import to_html, to_markdown
from velado.study.evaluate.page._study_tables import tradeoff_table

__all__ = ["to_html", "to_markdown", "tradeoff_table"]
