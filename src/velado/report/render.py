"""A page of blocks as HTML, Markdown and JSON: the same content three times, in the language asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from velado.report.blocks import (
    Block,
    Bullets,
    Code,
    Drawing,
    Folded,
    Heading,
    Legend,
    Page,
    Table,
    Text,
)
from velado.report.charts import BarChart, tell
from velado.text import Sentence, language

HTML_LANGUAGE = {"en": "en", "pt": "pt-BR"}


@cache
def environment(*packages: str, finish: Callable[[str], str] = tell) -> Environment:
    """Templates of the kit, and of further *packages* (their `templates` folders), with every text escaped.

    Texts are told in the language spoken; *finish* may do more to each, markup is left as it is. One environment is
    made for all pages of a kind: its templates are compiled once.

    >>> environment().get_template("kit.html.j2").module.table is not None
    True
    """
    return Environment(
        loader=ChoiceLoader([PackageLoader(name, "templates") for name in (*packages, "velado.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: (
            value if isinstance(value, Markup) or not isinstance(value, str) else finish(value)
        ),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def source(templates: Environment, name: str) -> str:
    """The text of a style or script beside the templates.

    >>> ".verdict" in source(environment(), "report.css")
    True
    """
    assert templates.loader is not None
    return templates.loader.get_source(templates, name)[0]


def render_html(page: Page) -> str:
    """The page as one self-contained file: no script, no network, printable.

    Column names and values of the table are shown as text, never as markup.

    >>> from velado.report.blocks import section
    >>> page = Page(title="Report on <stays>", sections=(section("risk", "Risk", "None."),))
    >>> "<h1>Report on &lt;stays&gt;</h1>" in render_html(page)
    True
    """
    templates = environment()
    style = Markup(source(templates, "report.css"))
    return templates.get_template("report.html.j2").render(
        page=page, language=HTML_LANGUAGE[language()], style=style
    )


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def render_markdown(page: Page) -> str:
    """The page as Markdown; charts become tables of their numbers, once each.

    Texts are escaped: a column name cannot become markup or a link.

    >>> from velado.report.blocks import section
    >>> print(render_markdown(Page(title="Report", sections=(section("risk", "Risk", "None."),))).split("---")[0])
    # Report
    <BLANKLINE>
    ## Risk
    <BLANKLINE>
    None.
    <BLANKLINE>
    <BLANKLINE>
    """
    lines = [f"# {_plain(page.title)}"]
    if page.subtitle:
        lines += ["", _plain(page.subtitle)]
    if page.verdict is not None:
        lines += ["", f"> **{_plain(page.verdict.label)}: {_plain(page.verdict.headline)}**"]
        lines += [f">\n> {_plain(sentence)}" for sentence in page.verdict.details]
    if page.notice is not None:
        lines += ["", f"**{_plain(page.notice.title)}** {_plain(page.notice.text)}", ""]
    lines += [f"- {_plain(entry.name)}: {_plain(entry.value)}" for entry in page.key_figures]
    for part in page.sections:
        lines += ["", f"## {_plain(part.title)}", *markdown_blocks(part.blocks)]
    return "\n".join([*lines, "", "---", "", _plain(page.footer), ""])


def markdown_blocks(blocks: Sequence[Block]) -> list[str]:
    """Blocks as lines of Markdown, an empty line before each.

    >>> from velado.report.blocks import text
    >>> markdown_blocks([text("5 < 6")])
    ['', '5 \\\\< 6']
    """
    lines: list[str] = []
    for block in blocks:
        if not (isinstance(block, BarChart) and block.in_table):
            lines += ["", *_block(block)]
    return lines


def _block(block: Block) -> list[str]:
    match block:
        case Text(text=said):
            return [_plain(said)]
        case Heading(title=title):
            return [f"### {_plain(title)}"]
        case Bullets(items=items):
            return [f"- {_plain(item)}" for item in items]
        case Code(text=line):
            return ["```", line.replace("`", "'").replace("\n", " "), "```"]
        case Table():
            return _table(block)
        case BarChart():
            rows = tuple((bar.label, *bar.texts) for bar in block.bars)
            return _table(Table(block.title, (block.axis, *block.series), rows))
        case Drawing():
            return [_plain(part) for part in (block.description, block.caption) if part]
        case Folded(title=title, blocks=inner):
            return [f"**{_plain(title)}**", *markdown_blocks(inner)]
        case Legend():
            return []  # it explains marks, and none are drawn here


def _table(table: Table) -> list[str]:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    return [
        *([f"**{_plain(table.title)}**", ""] if table.title else []),
        line(_plain(cell) for cell in table.header),
        line("---:" if figure else "---" for figure in table.figures),
        *(line(_plain(cell) for cell in row) for row in table.rows),
    ]


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", tell(text).replace("\r", " ").replace("\n", " "))


def to_json(value: object) -> str:
    """Outcomes, blocks and plain values as the text of a JSON file.

    A number that is not finite would be no JSON, so there must be none.

    >>> from velado.report.blocks import text
    >>> print(to_json(text("It holds.")), end="")
    {
      "kind": "text",
      "text": "It holds.",
      "hint": false
    }
    """
    return json.dumps(as_values(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_values(value: object) -> object:
    """The same as plain lists and dicts; a dataclass that has a *kind* says it.

    >>> from velado.report.blocks import Code
    >>> as_values((Code("velado"), 1))
    [{'kind': 'code', 'text': 'velado'}, 1]
    """
    if is_dataclass(value) and not isinstance(value, type):
        kind = {"kind": value.kind} if hasattr(value, "kind") else {}
        return kind | {one.name: as_values(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_values(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_values(part) for part in value]
    return tell(value) if isinstance(value, Sentence) else value
