"""Stand-in until the text room is merged: sentences in English only."""


def say(template: str, /, **parts: object) -> str:
    """The sentence of *template* with its parts filled in."""
    return template.format(**parts) if parts else template
