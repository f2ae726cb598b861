"""Brazil's Lei Geral de Proteção de Dados (Law 13.709/2018): when data are anonymized, and the impact report (RIPD)."""

from velado.report.evidence.laws._law import Law, Part, fields
from velado.text import say

LGPD = Law(
    name="lgpd",
    title=say("LGPD (Brazil, Law 13.709/2018)"),
    cites=(
        (
            say("art. 5, III and XI"),
            say(
                "Data are anonymized if their holder cannot be identified with technical means that are reasonable and "
                "available at the time. The three tests, side doors and decisions of this pack speak to that."
            ),
        ),
        (
            "art. 5, X",
            say("Making, handing over and publishing the table are processing of the original."),
        ),
        (
            "art. 12",
            say(
                "Anonymized data are not personal data unless the process can be reversed with one's own means alone or "
                "with reasonable efforts; cost and time by the technology there is decide. The owner's key and private "
                "folder are means of the owner: whoever holds them can tell which row is which."
            ),
        ),
        (
            "art. 13",
            say(
                "Studies in public health may use personal data under security measures, anonymized or pseudonymized "
                "wherever possible."
            ),
        ),
        (
            "art. 38",
            say(
                "The authority may ask the controller for an impact report (RIPD). It describes at least the kinds of "
                "data, the methods of collecting and of securing them, and the controller's analysis of measures and "
                "safeguards: the annex is laid out so."
            ),
        ),
    ),
    annex_title=say("Annex to the impact report (RIPD), LGPD art. 38"),
    annex=(
        Part(say("Who and what for"), fields("controller", "officer", "recipient", "purpose", "legal_basis")),
        Part(
            say("Kinds of data (art. 38, sole paragraph)"),
            fields("table", "people", "published", "generalized", "held back", "sensitive"),
        ),
        Part(
            say("Methods of collecting and of securing the data"),
            fields("necessity", "method", "promises", "retention"),
        ),
        Part(
            say("Analysis of measures, safeguards and mitigated risks"),
            fields("singling out", "linkability", "inference", "decisions", "measures", "remarks"),
        ),
        Part(say("Signatures"), fields("signed_by", "approved_by")),
    ),
)
"""LGPD."""
