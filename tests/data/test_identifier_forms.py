"""What is quickly looked for before a form of writing must stand in whatever the form matches."""

import polars as pl
import pytest

from velado.data.identifiers._shapes import _FORMS

HOME, USERS = "home", "Users"  # apart, because no file here names a path of one machine
WRITTEN = (
    "ana@x.br", "ana@maria", "ana (at) x.br", "ana[arroba]x", r"corp\ana.lima", f"/{HOME}/ana", rf"C:\{USERS}\ana",
    "https://x.br/a", "www.x.br/a", "@ana_lima", "10.0.0.1", "10.0.0.1:80", "00:1b:44:11:3a:b7", "001b.4411.3ab7",
    "2001:db8:0:0:0:0:0:1", "fe80::1", "123e4567-e89b-12d3-a456-426614174000", "d41d8cd98f00b204e9800998ecf8427e",
    "12.345.678/0001-95", "12.345.678-X", "MG 12.345.678", "123-45-6789", "-23.5505, -46.6333", "POINT (1 2)", "///filled.count.soap",
    "23d33m12", "8FVC9G8F+6W", "23 ° 30 '", "(11) 91234-5678", "11 91234-5678", "+44 20 7946 0958", "212-555-0100", "612 345 678",
    "Rua das Flores, 12", "12 Main Street", "Hauptstraße 5", "12 rue de la Paix", "via Roma 3", "٣ Main Street", "face.jpg", "data:image/png",
)  # fmt: skip


@pytest.mark.parametrize("form", _FORMS, ids=lambda form: f"{form.kind}-{form.pattern[:12]}")
def test_what_a_form_is_looked_for_by_stands_in_all_it_matches(form):
    texts = pl.Series(WRITTEN)
    matched = texts.filter(texts.str.contains(form.pattern))
    assert matched.len(), "no example of this form"
    assert matched.str.contains(form.holds).all()
