"""What people state in an evidence pack: no measure can say it, so an empty one is marked for a person to fill in."""

from __future__ import annotations

from typing import Annotated

from velado.settings import Setting, settings

_MOST = 4000
TAKES = "a text of at most 4,000 characters"


def _fits(text: str) -> bool:
    return len(text) <= _MOST


@settings(kw_only=True)
class Statements:
    """Who answers for the release, for whom and why it is made; every one may be left empty.

    >>> Statements(recipient="Universidade").given
    {'recipient': 'Universidade'}
    """

    controller: Annotated[str, Setting("who decides about the data", test=_fits, takes=TAKES)] = ""
    officer: Annotated[str, Setting("the data protection officer", test=_fits, takes=TAKES)] = ""
    recipient: Annotated[str, Setting("who gets the table", test=_fits, takes=TAKES)] = ""
    purpose: Annotated[str, Setting("what for", test=_fits, takes=TAKES)] = ""
    legal_basis: Annotated[str, Setting("the legal basis", test=_fits, takes=TAKES)] = ""
    necessity: Annotated[str, Setting("why less would not do", test=_fits, takes=TAKES)] = ""
    retention: Annotated[str, Setting("how long it is kept", test=_fits, takes=TAKES)] = ""
    measures: Annotated[
        str, Setting("safeguards around the table, such as a contract", test=_fits, takes=TAKES)
    ] = ""
    signed_by: Annotated[str, Setting("who signs for the release", test=_fits, takes=TAKES)] = ""
    approved_by: Annotated[str, Setting("the second person who approved", test=_fits, takes=TAKES)] = ""
    remarks: Annotated[str, Setting("anything else", test=_fits, takes=TAKES)] = ""

    @property
    def given(self) -> dict[str, str]:
        """Those that are not empty."""
        return {name: text for name, text in vars(self).items() if text.strip()}
