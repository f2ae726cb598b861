"""What other rooms tell a person to write into a schema or on a command line, in the words of the desk's own controls.

A sentence that stands here is told in the desk's words, with the same parts; every other one as it came.
"""

from __future__ import annotations

from collections.abc import Mapping

from velado.errors import VeladoError
from velado.text import Sentence, say

_PAIRS: tuple[tuple[Sentence, Sentence], ...] = (
    (
        say('if outsiders may know it, set role = "quasi"'),
        say("if outsiders may know it, choose the role that says so"),
    ),
    (
        say('if rows that share it are one household, set role = "identifier" and group = true'),
        say("if rows that share it are one household, hold it back: whoever knows the household finds them"),
    ),
    (
        say("if it says how many people a row stands for, set sampling_weight = true and publish = false"),
        say("if it says how many people a row stands for, hold it back"),
    ),
    (
        say('For {names} set publish = false, or accept the risk with side_door = "accept".'),
        say("Hold {names} back, or accept the risk and say why."),
    ),
    (
        say(
            'For {names} set role = "quasi", or publish = false, or accept the risk with side_door = "accept".'
        ),
        say(
            "Make {names} something outsiders may know (Roles), hold it back, or accept the risk and say why."
        ),
    ),
    (
        say(
            'In [columns.{column}] set role = "identifier" or publish = false; if it names nobody, sign for it: '
            'identifier = "accept" and reason = "...".'
        ),
        say(
            "At Roles choose for '{column}' that it names the person, or hold it back; if it names nobody, write there why."
        ),
    ),
    (
        say("Allow --suppression {dropped:g}, or lower k."),
        say("At Promise allow {dropped:.1%} of the rows to be left out, or let each hide among fewer."),
    ),
    (
        say("Allow --suppression {share} ({rows}), lower the parameter, or use a method that merges groups."),
        say(
            "At Promise allow a share of {share} of the rows to be left out ({rows}), promise less, or choose another method."
        ),
    ),
    (
        say(
            'List texts that mean "no value" in missing_values of [table], correct the cells, or set kind = "categorical".'
        ),
        say(
            "At Open name the texts that mean no value, correct the cells, or say at Roles that its values are categories."
        ),
    ),
    (
        say('Set decimal = "," in [table] of the schema.'),
        say("At Open choose the comma as decimal mark."),
    ),
    (
        say('Write those numbers with a comma, or set decimal = "." in [table] of the schema.'),
        say("Write those numbers with a comma, or choose the point as decimal mark at Open."),
    ),
    (
        say(
            'Set kind = "numeric" in the schema if it holds numbers; if an operation before made intervals of them, put this one first.'
        ),
        say("Say at Roles that its values are numbers, if they are; else decide otherwise about the column."),
    ),
    (
        say('Give it role = "other", or set constant = "allow" in [table] of the schema.'),
        say("At Roles choose for it that it is neither known to outsiders nor private."),
    ),
    (
        say('Give role = "quasi" to columns an attacker may know: age, sex, place, dates.'),
        say("At Roles say which columns outsiders may know: age, sex, place, dates."),
    ),
    (
        say('Give a column role = "sensitive" in the schema.'),
        say("At Roles say which column must not be learnt."),
    ),
    (
        say("Set person = true in [columns.{repeated}], or say that each row is a person with --per row."),
        say("Say that '{repeated}' is the person, or that each row is one (Who is a person?)."),
    ),
    (
        say("Set person = true on '{repeated}' instead, or say that each row is a person with --per row."),
        say("Say that '{repeated}' is the person, or that each row is one (Who is a person?)."),
    ),
    (
        say('Set the column\'s `format`, for example format = "%d/%m/%Y", or correct the values.'),
        say("Correct the values, or say at Roles that they are categories."),
    ),
    (
        say('Set the column\'s `format`, correct the cells, or set kind = "text" or "categorical" for it.'),
        say("Correct the values, or say at Roles that they are categories."),
    ),
    (
        say(
            "Name the sheet: --sheet NAME, in Python sheet=... of velado.read_table; or save it as a file of its own."
        ),
        say("Choose the sheet below, or save it as a file of its own."),
    ),
    (
        say("Name one of them, as it is spelt there."),
        say("Choose one of them below."),
    ),
    (
        say("Correct the file, or set `separator` in [table] of the schema."),
        say("Correct the file, or choose another separator below."),
    ),
    (
        say("Complete or remove those rows, or set `separator` in [table] of the schema."),
        say("Complete or remove those rows, or choose another separator below."),
    ),
    (
        say("Export the one table with the rows as CSV, for example with the database's own program."),
        say(
            "If it is a database of SQLite or DuckDB, name it above under 'A table of a database'; else export the one table as CSV."
        ),
    ),
    (
        say("Column '{column}' identifies people ({why}), and its role \"{role}\" would publish it."),
        say("Column '{column}' identifies people ({why}), and would be published."),
    ),
    (
        say("Column '{column}' may identify people ({why}), and its role \"{role}\" would publish it."),
        say("Column '{column}' may identify people ({why}), and would be published."),
    ),
    (
        say(
            "Add the missing values to the taxonomy, or correct them in the table (spelling, accents, spaces); "
            "--show-values FILE writes them to a private file."
        ),
        say(
            "At Hierarchies place them by hand: the editor of the column lists them. Correct misspelt ones in the table."
        ),
    ),
    (
        say(
            "Correct the values, list those that mean nothing in missing_values, or write a level file and place them by hand."
        ),
        say(
            "At Hierarchies take it again: the values it does not know are then listed, and placed by hand. Name those that mean "
            "nothing at Open."
        ),
    ),
)
DESK_WORDS: Mapping[str, str] = {theirs.template: ours.template for theirs, ours in _PAIRS}


def at_the_desk(sentence: str) -> str:
    """A sentence as the desk says it, and so every sentence that is a part of it.

    >>> at_the_desk(say('if outsiders may know it, set role = "quasi"'))
    'if outsiders may know it, choose the role that says so'
    >>> at_the_desk(say("{one}.", one=say('if outsiders may know it, set role = "quasi"')))
    'if outsiders may know it, choose the role that says so.'
    """
    if not isinstance(sentence, Sentence):
        return Sentence(DESK_WORDS[sentence]) if sentence in DESK_WORDS else sentence
    parts = {
        name: at_the_desk(part) if isinstance(part, Sentence) else part
        for name, part in sentence.parts.items()
    }
    template = DESK_WORDS.get(sentence.template, sentence.template)
    if template == sentence.template and parts == dict(sentence.parts):
        return sentence
    return Sentence(template, parts, sentence.many, sentence.amount)


def error_at_the_desk(error: VeladoError) -> tuple[str, str, str]:
    """What happened, why it matters and what to do about it, as the desk says it.

    >>> error_at_the_desk(VeladoError("It broke.", "It matters.", 'Give a column role = "sensitive" in the schema.'))
    ('It broke.', 'It matters.', 'At Roles say which column must not be learnt.')
    """
    return at_the_desk(error.what), at_the_desk(error.why), at_the_desk(error.fix)
