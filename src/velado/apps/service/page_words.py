"""Every text of the page by the key that its template and its script know it by, told from the one catalogue."""

from __future__ import annotations

from collections.abc import Mapping

from velado.text import Language, Sentence, say, told

# Places such as {column} are filled in by the page's script, which has the numbers.
_WORDS: Mapping[str, Sentence] = {
    "title": say("Ask without seeing"),
    "lead": say("Questions about people, answered with noise that protects each of them."),
    "skip": say("Skip to the question"),
    "token": say("Token"),
    "token_hint": say(
        "The owner of the data gave it to you. It stays in this tab and is forgotten when you close it."
    ),
    "enter": say("Log in"),
    "leave": say("Log out"),
    "you_are": say("You are {analyst} ({role})."),
    "owner": say("owner"),
    "analyst": say("analyst"),
    "dataset": say("Data set"),
    "columns": say("Columns"),
    "column": say("Column"),
    "kind": say("Kind"),
    "range": say("Declared bounds or values"),
    "groupable": say("For GROUP BY"),
    "yes": say("yes"),
    "no": say("no"),
    "numeric": say("number"),
    "categorical": say("category"),
    "date": say("date"),
    "text": say("text"),
    "and_more": say("and {count} more"),
    "promise": say("What is promised"),
    "promise_groups": say(
        "Protected together: all rows with the same {column}, of which at most {rows} count. "
        "{definition}, over all answers to all analysts."
    ),
    "promise_strict": say(
        "Protected: each single row. Holds for rows that tell nothing of one another. {definition}, "
        "over all answers to all analysts."
    ),
    "promise_if": say(
        "Only if a related row's contribution to any answer asked moves by at most the declared "
        "fraction {dependence}."
    ),
    "pure": say("Epsilon-differential privacy"),
    "zcdp": say("Zero-concentrated differential privacy (rho)"),
    "question": say("Your question"),
    "sql": say("Query (SQL)"),
    "sql_hint": say(
        "One SELECT with COUNT, SUM, AVG, MIN, MAX, a quantile or a histogram; WHERE and GROUP BY are "
        "allowed. Ctrl+Enter asks."
    ),
    "build": say("Build a query"),
    "what": say("Compute"),
    "of": say("of"),
    "by": say("for each"),
    "nothing": say("(nothing)"),
    "every_row": say("(rows)"),
    "put": say("Write it below"),
    "spend": say("Spend at most"),
    "spend_hint": say("More spent, less noise. Empty: {each}."),
    "confidence": say("Confidence of the interval"),
    "price": say("See the price"),
    "ask": say("Ask and pay"),
    "price_title": say("Price"),
    "price_cost": say("Costs {measure} {cost}; {left} is left."),
    "price_free": say("Costs nothing: no row is looked at."),
    "price_enough": say("There is enough left for it."),
    "price_short": say("There is not enough left for it."),
    "mechanism": say("Mechanism"),
    "sensitivity": say("One unit moves it by at most"),
    "scale": say("Noise scale"),
    "charge": say("Cost"),
    "draw": say("Drawn"),
    "rank_error": say("May miss the rank by"),
    "rank_rows": say("{rows} rows"),
    "rank_chance": say("Ranks are missed by no more than that with a chance of at least {level}."),
    "need_rows": say("rows"),
    "need_rows with": say("rows with '{column}'"),
    "need_sum of": say("sum of '{column}'"),
    "need_centred sum of": say("centred sum of '{column}'"),
    "need_histogram of": say("histogram of '{column}'"),
    "need_quantile of": say("{quantile} quantile of '{column}'"),
    "level": say("at level"),
    "bins": say("bins"),
    "tiny": say("less than 0.000001"),
    "asked_before": say(
        "You asked this before with this spend. As long as the table is the same, asking again gives "
        "the same numbers at no cost."
    ),
    "answer": say("Answer"),
    "answer_cost": say("Cost {measure} {cost}. {left} is left."),
    "answer_stored": say("Asked before with the same spend: the same numbers again, at no cost."),
    "interval": say("{level} interval"),
    "value_of": say("{name}: value"),
    "missing_key": say("(missing or undeclared)"),
    "chart_of": say("Bars of {name} with intervals: {text}"),
    "chart_cut": say("The chart shows the first {count} rows."),
    "noisy": say(
        "Every number carries noise. Each interval holds the exact value over {rows}, with numbers "
        "moved to their declared bounds and steps, with a chance of at least {level}. It is about the "
        "noise alone."
    ),
    "all_rows": say("every row"),
    "rows_that_count": say("the rows that count (at most {rows} with one value of {column})"),
    "bound": say("{name} is the declared bound of '{column}'; no rows were looked at."),
    "extreme": say("{name}: {asked} is answered as the {quantile} quantile."),
    "quantile": say("{name}: the {quantile} quantile."),
    "rank": say("It may miss the asked rank by {rows} rows, by no more with a chance of at least {level}."),
    "rank_best": say(
        "It may miss the asked rank by {rows} rows more than the best of {candidates} candidates "
        "does, by no more with a chance of at least {level}."
    ),
    "implied": say("At delta {delta} this answer alone implies an epsilon of {epsilon}."),
    "steps": say("in steps of {step}"),
    "budget": say("Budget"),
    "budget_line": say("{spent} of {total} ({measure}) spent by everybody; {left} left."),
    "budget_you": say("You have spent {spent}."),
    "budget_cap": say("You have spent {spent} of your share of {cap}."),
    "everybody": say("Everybody"),
    "spent": say("Spent"),
    "share": say("Share"),
    "implies": say("Implies epsilon {epsilon} at delta {delta}."),
    "history": say("Your questions"),
    "history_none": say("You have asked nothing yet."),
    "again": say("Show again"),
    "when": say("When"),
    "asked": say("Question"),
    "error": say("This did not work"),
    "why": say("Why"),
    "fix": say("What to do"),
    "working": say("Working…"),
    "offline": say("The service did not answer."),
    "offline_why": say("It may have been stopped, or the network is down."),
    "offline_fix": say(
        "Try again in a moment. If the question was paid, asking it again with the same spend is free."
    ),
    "print": say("Print"),
    "noscript": say(
        "This page needs its script to ask questions; programs can use the API described at /docs."
    ),
    "api": say("For programs"),
    "docs_title": say("The API of this service"),
    "docs_lead": say(
        "Send the token with every request, as the header Authorization: Bearer TOKEN. Errors are "
        "JSON with what, why, fix and code."
    ),
    "docs_machine": say("The same for machines"),
    "body": say("Body"),
    "parameters": say("Parameters"),
    "replies": say("Replies"),
    "required": say("required"),
    "served": say("Served."),
    "epsilon": say("epsilon"),
    "rho": say("rho"),
}
_OTHERS: Mapping[Language, tuple[Language, str]] = {"en": ("pt", "Português"), "pt": ("en", "English")}


def page_words(tongue: Language) -> dict[str, str]:
    """The texts in a language, which is their key "lang"; "other" leads to the page in the other one.

    >>> page_words("pt")["other"], page_words("en")["rank_rows"]
    ('English', '{rows} rows')
    """
    code, other = _OTHERS[tongue]
    told_words = {key: told(text, tongue) for key, text in _WORDS.items()}
    return {"lang": tongue, "other_lang": code, "other": other, **told_words}
