"""The language is the flag's, else the browser's, else the environment's, else English."""

import threading

import pytest

from velado.text import LANGUAGES, choose, language, speaking


@pytest.mark.parametrize(
    ("flag", "environment", "header", "expected"),
    [
        (None, None, None, "en"),
        ("pt", {"VELADO_LANG": "en"}, "en", "pt"),
        ("en", {"VELADO_LANG": "pt"}, "pt", "en"),
        ("fr", {"VELADO_LANG": "pt"}, None, "pt"),
        (None, {"VELADO_LANG": "pt_BR.UTF-8"}, "en", "en"),
        (None, {"VELADO_LANG": "pt_BR.UTF-8"}, "*", "pt"),
        (None, {"VELADO_LANG": "PT"}, None, "pt"),
        (None, {"VELADO_LANG": "xx"}, "pt-BR", "pt"),
        (None, {"LANG": "pt_BR.UTF-8", "LC_ALL": "pt_BR.UTF-8"}, None, "en"),
        (None, {}, "fr;q=0.9, pt;q=0.3, en;q=0.2", "pt"),
        (None, {}, "pt;q=0.3, en-GB;q=0.8", "en"),
        (None, {}, "pt;q=a, en", "en"),
        (None, {}, "de, fr", "en"),
        (None, {}, "x," * 300 + "pt", "en"),
    ],
)
def test_the_first_known_language_is_chosen(flag, environment, header, expected) -> None:
    assert choose(flag, environment, header) == expected


def test_speaking_ends_with_its_block_even_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), speaking("pt"):
        assert language() == "pt"
        raise ZeroDivisionError
    assert language() == LANGUAGES[0] == "en"


def test_a_language_is_not_seen_by_other_threads() -> None:
    seen = []
    with speaking("pt"):
        thread = threading.Thread(target=lambda: seen.append(language()))
        thread.start()
        thread.join()
    assert seen == ["en"]
