"""What `velado data` prints, in English and Portuguese, under the same keys."""

from __future__ import annotations

EN = {
    "data_name": "name",
    "data_what": "what",
    "data_place": "place below the data folder",
    "data_state": "state",
    "data_page": "page",
    "data_missing": "missing",
    "data_there": "there",
    "data_unchecked": "there, not checked",
    "data_another": "there, but another file",
    "data_by_hand": "by hand",
    "data_fetched": "{place}: fetched, SHA-256 {digest}",
    "data_already": "{place}: there already",
    "reproduce_data": "data",
    "reproduce_hint": "`velado data get NAME` fetches data; `velado data list` says what is there.",
    "data_recorded": "Its checksum was not known; later downloads will be compared with this one.",
}

PT = {
    "data_name": "nome",
    "data_what": "o quê",
    "data_place": "lugar na pasta de dados",
    "data_state": "estado",
    "data_page": "página",
    "data_missing": "falta",
    "data_there": "presente",
    "data_unchecked": "presente, não conferido",
    "data_another": "presente, mas é outro arquivo",
    "data_by_hand": "à mão",
    "data_fetched": "{place}: baixado, SHA-256 {digest}",
    "data_already": "{place}: já está lá",
    "reproduce_data": "dados",
    "reproduce_hint": "`velado data get NOME` baixa os dados; `velado data list` diz o que já está lá.",
    "data_recorded": "Sua soma de verificação não era conhecida; os próximos downloads serão comparados com este.",
}
