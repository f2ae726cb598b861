"""The European Union's General Data Protection Regulation: anonymous information, and the impact assessment (DPIA)."""

from velado.report.evidence.laws._law import Law, Part, fields
from velado.text import say

GDPR = Law(
    name="gdpr",
    title=say("GDPR (Regulation (EU) 2016/679)"),
    cites=(
        (
            say("recital 26"),
            say(
                "Whether somebody is identifiable depends on all the means reasonably likely to be used, by anybody; "
                "information that relates to nobody identifiable is outside the Regulation. Opinion 05/2014 (WP216) reads "
                "it by three tests: singling out, linkability and inference."
            ),
        ),
        (
            "art. 4(5)",
            say(
                "Data that can be attributed to a person with additional information kept apart are pseudonymised, and "
                "still personal. The owner's private folder is such information, for the owner."
            ),
        ),
        (
            "art. 35",
            say(
                "A likely high risk calls for an impact assessment (DPIA). Its paragraph 7 asks for a description, "
                "necessity, risks and measures: the annex is laid out so."
            ),
        ),
        (
            "art. 89",
            say(
                "Archiving, research and statistics are subject to safeguards, which may include pseudonymisation; what can "
                "be done without identifying people shall be done so."
            ),
        ),
    ),
    annex_title=say("Annex to the data protection impact assessment, GDPR art. 35"),
    annex=(
        Part(
            say("Description of the processing and its purposes (art. 35(7)(a))"),
            fields(
                "controller",
                "officer",
                "recipient",
                "purpose",
                "legal_basis",
                "table",
                "people",
                "published",
                "generalized",
                "held back",
                "sensitive",
                "method",
            ),
        ),
        Part(say("Necessity and proportionality (art. 35(7)(b))"), fields("necessity", "retention")),
        Part(
            say("Risks to rights and freedoms (art. 35(7)(c))"),
            fields("singling out", "linkability", "inference"),
        ),
        Part(
            say("Measures against the risks (art. 35(7)(d))"),
            fields("promises", "decisions", "measures", "remarks"),
        ),
        Part(say("Signatures"), fields("signed_by", "approved_by")),
    ),
)
"""GDPR."""
