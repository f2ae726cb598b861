"""What a request says is read as every setting is, and answered in the language it asks for; the app runs in this process."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from velado.apps.service.service_settings import ServiceLimits, settings_from
from velado.errors import LedgerError, ParameterError, SchemaError, VeladoError
from velado.query.budget import Budget
from velado.query.engines import identity_of
from velado.query.store import open_ledger
from velado.query.unit import Unit

from .running import SECRET, Reply, token, write_service

COUNT = "SELECT COUNT(*) FROM people"
TAKES = "It takes a number above 0, at most 1000, or a text such as '1/3'"
WHY = "Nothing can be answered for nothing, and beyond that nothing is protected."

Call = Callable[..., Reply]


@pytest.fixture(scope="module")
def call(needs_the_extras: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """One request to the real application, by a token of *who*."""
    from velado.apps.service.service_settings import read_settings
    from velado.apps.service.web_app import create_app

    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("requests")
        patch.setenv("VELADO_STATE", str(folder / "state"))
        patch.delenv("VELADO_LANG", raising=False)
        file = write_service(folder)
        tokens = {"root": token(file, "root", "owner"), "ana": token(file, "ana")}
        app = create_app(read_settings(file))

        def once(
            method: str, address: str, body: object = None, who: str | None = "ana", **headers: str
        ) -> Reply:
            found = urlsplit(address)
            sent = {name.replace("_", "-").lower(): value for name, value in headers.items()}
            if who is not None:
                sent["authorization"] = f"Bearer {tokens[who]}"
            data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
            scope = {
                "type": "http",
                "asgi": {"version": "3.0"},
                "http_version": "1.1",
                "method": method,
                "scheme": "http",
                "path": found.path,
                "raw_path": found.path.encode(),
                "query_string": found.query.encode(),
                "root_path": "",
                "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
                "client": ("127.0.0.1", 1),
                "server": ("127.0.0.1", 80),
            }
            told: list[Any] = []
            first = [{"type": "http.request", "body": data, "more_body": False}]

            async def receive() -> dict[str, Any]:
                if first:
                    return first.pop()
                await asyncio.Event().wait()
                raise AssertionError

            async def send(message: MutableMapping[str, Any]) -> None:
                told.append(message)

            asyncio.run(app(scope, receive, send))
            text = b"".join(message.get("body", b"") for message in told[1:]).decode()
            return Reply(told[0]["status"], {k.decode(): v.decode() for k, v in told[0]["headers"]}, text)

        yield once
        app.state.service.give_back()


def refused(call: Call, body: object, path: str = "/v1/price", who: str = "ana", **headers: str) -> Any:
    reply = call("POST", path, body, who, **headers)
    assert reply.status == 422 and reply.json["code"] == "parameter", reply.text
    return reply.json


@pytest.mark.parametrize(
    ("more", "what", "fix"),
    [
        ({"spned": 1}, "Unknown key 'spned' of the request.", "Did you mean 'spend'?"),
        ({"sql": None}, "'sql' of the request cannot be none.", "Correct it."),
        ({"sql": 5}, "'sql' of the request cannot be 5.", "Put it in quotes."),
        ({"confidence": True}, "'confidence' of the request cannot be true.", "Give a number"),
        ({"confidence": 1}, "'confidence' of the request cannot be 1.", "Give less than 1."),
        ({"dataset": ["people"]}, "'dataset' of the request cannot be a list.", "Correct it."),
    ],
)
def test_a_wrong_request_is_told_with_its_key_and_the_nearest_word(
    call: Call, more: Any, what: str, fix: str
) -> None:
    told = refused(call, {"dataset": "people", "sql": COUNT, **more})
    assert told["what"] == what and told["fix"].startswith(fix)


def test_a_missing_key_and_one_that_stands_twice_are_told(call: Call) -> None:
    assert refused(call, {"dataset": "people"})["what"] == "'sql' of the request is missing."
    twice = b'{"dataset": "people", "sql": "SELECT COUNT(*) FROM people", "spend": 1, "spend": 0.1}'
    assert refused(call, twice)["what"] == "'spend' of the request is given twice."
    got = call("GET", "/v1/answers?dataset=people&dataset=others")
    assert (got.status, got.json["what"]) == (422, "'dataset' of the request is given twice.")


def test_what_stands_in_an_address_is_read_like_a_body(call: Call) -> None:
    assert call("GET", "/v1/answers?dataset=people&most=3&lang=pt").json["dataset"] == "people"
    for query, what in {
        "dataset=people&most=0": "'most' of the request cannot be 0.",
        "dataset=people&most=x": "'most' of the request cannot be 'x'.",
        "datset=people": "Unknown key 'datset' of the request.",
        "most=1": "'dataset' of the request is missing.",
    }.items():
        assert call("GET", f"/v1/answers?{query}").json["what"] == what


@pytest.mark.parametrize(
    ("value", "shown", "fix"),
    [
        (0, "0", "Give more than 0."),
        ("abc", "'abc'", "Write for example 0.5."),
        ("0,5", "'0,5'", "Write it with a point: 0.5."),
    ],
)
def test_a_wrong_spend_has_one_sentence_through_every_door(
    call: Call, tmp_path: Path, value: object, shown: str, fix: str
) -> None:
    from velado.apps.cli.commands._query import PriceFlags

    def said(job: Callable[[], object]) -> tuple[str, str, str]:
        with pytest.raises(VeladoError) as wrong:
            job()
        return wrong.value.what, wrong.value.why, wrong.value.fix

    service = {
        "schema": "s",
        "ledger": "l",
        "file": "f",
        "budget": {"epsilon": 1},
        "each": value,
    }
    web = refused(call, {"dataset": "people", "sql": COUNT, "spend": value})
    told = [
        (web["what"], web["why"], web["fix"]),
        said(lambda: Budget.epsilon(value)),  # type: ignore[arg-type]
        said(lambda: PriceFlags(epsilon=str(value)).allowed(None)),
        said(lambda: settings_from({"datasets": {"people": service}}, tmp_path)),
    ]
    names = (
        "'spend' of the request",
        "'epsilon' of the budget",
        "--epsilon",
        "'each' in [datasets.people] of the service file",
    )
    for (what, why, how), name in zip(told, names, strict=True):
        at = f"'{value}'" if name == "--epsilon" and value == 0 else shown
        assert what in (f"{name} cannot be {at}.", f"{name} cannot be {shown}.")
        assert why.startswith(TAKES) and why.endswith(WHY) and how == fix


def test_errors_are_told_in_the_language_asked_for(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"dataset": "people", "sql": COUNT, "spend": "0,5"}
    told = refused(call, wrong, Accept_Language="pt-BR,pt;q=0.9,en;q=0.5")
    assert "não pode ser '0,5'" in told["what"] and told["fix"] == "Escreva com ponto: 0.5."
    assert told["why"].startswith("Aceita um número acima de 0")
    assert refused(call, wrong, path="/v1/price?lang=pt")["fix"] == "Escreva com ponto: 0.5."
    assert refused(call, wrong, path="/v1/price?lang=en", Accept_Language="pt")["fix"].startswith("Write it")
    nobody = call("GET", "/v1/budget", who=None, Accept_Language="pt")
    assert nobody.status == 401 and nobody.json["what"] == "O pedido não traz código de acesso em vigor."
    large = call("POST", "/v1/price", b"x" * 70_000, Accept_Language="pt")
    assert large.status == 413 and large.json["what"].startswith("O corpo do pedido tem mais de")
    monkeypatch.setenv("VELADO_LANG", "pt")
    assert call("GET", "/nothing").json["what"] == "Não há nada neste endereço."
    # The reader's own language comes before that of the service's owner.
    assert call("GET", "/nothing", Accept_Language="en").json["what"] == "There is nothing at this address."


def test_answers_are_told_in_the_language_asked_for_and_stay_readable_for_programs(call: Call) -> None:
    asked = {"dataset": "people", "sql": COUNT, "spend": "1/10"}
    english = call("POST", "/v1/answers", asked).json
    other = call("POST", "/v1/answers?lang=pt", asked).json
    assert other["rows"] == english["rows"] and other["stored"]
    assert english["guarantee"]["unit"] == "all rows with one value of 'household'"
    assert other["guarantee"]["unit"] == "todas as linhas com um mesmo valor de 'household'"
    words = [{key: told["guarantee"][key] for key in ("type", "mode", "column")} for told in (english, other)]
    assert words[0] == words[1]
    assert other["how"] == english["how"] and other["cost"]["measure"] == "epsilon"
    assert call("GET", "/v1/datasets?lang=pt").json["datasets"][0]["guarantee"]["type"] == "guaranteed"


def test_a_refused_query_is_told_in_portuguese(call: Call) -> None:
    reply = call("POST", "/v1/price?lang=pt", {"dataset": "people", "sql": "SELECT note FROM people"})
    assert reply.status == 422 and reply.json["code"] == "query-refused"
    english = call("POST", "/v1/price", {"dataset": "people", "sql": "SELECT note FROM people"}).json
    assert all(reply.json[key] != english[key] for key in ("what", "why", "fix")) and SECRET not in reply.text


def test_the_page_that_tells_the_api_is_portuguese_and_names_what_each_request_takes(call: Call) -> None:
    page = call("GET", "/docs?lang=pt", who=None).text
    assert "Perguntar; a resposta é paga do orçamento." in page and "A resposta com ruído" in page
    assert "o máximo que pode custar" in page and "O corpo não é JSON." in page and "Atendido." in page
    for english in ("The noisy answer", "Ask;", "Successful", "not JSON.", "the most it may"):
        assert english not in page
    document = call("GET", "/openapi.json", who=None).json
    body = document["paths"]["/v1/answers"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["dataset", "sql"] and body["additionalProperties"] is False
    assert [one["type"] for one in body["properties"]["spend"]["anyOf"]] == ["number", "string", "null"]
    listed = document["paths"]["/v1/answers"]["get"]["parameters"]
    assert [(one["name"], one["required"]) for one in listed] == [("dataset", True), ("most", False)]


def test_a_raise_without_a_reason_names_no_flag_of_the_command_line(call: Call) -> None:
    told = refused(call, {"dataset": "people", "total": 20, "reason": " "}, "/v1/budget/raise", "root")
    assert "--" not in told["fix"] and told["fix"].startswith("Give one")
    lower = refused(call, {"dataset": "people", "total": 1, "reason": "less"}, "/v1/budget/raise", "root")
    assert "velado ledger" not in lower["fix"]
    note = call(
        "POST", "/v1/budget/raise?lang=pt", {"dataset": "people", "total": 20, "reason": "mais"}, "root"
    ).json["note"]
    assert note.endswith("vale o do livro-razão, também na próxima partida.")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("x", True), "'rows' of the unit cannot be true."),
        (("x", 1.5), "'rows' of the unit cannot be 1.5."),
        ((5, 2), "'column' of the unit cannot be 5."),
        (("", 2), "'column' of the unit cannot be ''."),
        (("x", "4"), "'rows' of the unit cannot be '4'."),
        (("x", 2, "a"), "'dependence' of the unit cannot be 'a'."),
        ((None, 2), "A unit of more than one row has no column."),
    ],
)
def test_a_unit_is_checked_like_every_setting(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ParameterError) as wrong:
        Unit(*given)
    assert wrong.value.what == said


def test_a_table_is_not_taken_for_a_ledger_that_lost_its_seal(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("age\n3\n")
    with pytest.raises(LedgerError, match="is no ledger"):
        open_ledger(table, tmp_path / "no.seal").state()


def test_a_file_that_is_not_there_has_one_sentence(tmp_path: Path) -> None:
    from velado import read_schema, read_table
    from velado.data.schema import Schema
    from velado.query.engines import engine_for_file

    told = set()
    for job in (
        lambda: read_table(tmp_path / "no.csv", Schema({})),
        lambda: read_schema(tmp_path / "no.csv"),
        lambda: identity_of(tmp_path / "no.csv"),
        lambda: engine_for_file(tmp_path / "no.csv", Schema({}), Unit()),
    ):
        with pytest.raises((SchemaError, VeladoError)) as wrong:
            job()
        told.add(str(wrong.value))
    assert told == {"There is no file 'no.csv'. Nothing was read. Check the path and the spelling."}


def test_an_answer_comes_after_a_whole_tick(call: Call) -> None:
    """The lower bound alone: how much later it comes depends on the machine."""
    body = {"dataset": "people", "sql": COUNT, "spend": "0.001"}
    for _ in range(2):  # paid, and stored
        began = time.monotonic()
        assert call("POST", "/v1/answers", body).status == 200
        assert time.monotonic() - began >= ServiceLimits().tick_seconds * 0.999


@pytest.mark.parametrize(("passed", "waited"), [(0.0, 0.5), (0.1, 0.4), (0.5, 0.0), (0.6, 0.4), (1.4, 0.1)])
def test_replies_wait_for_the_next_tick(passed: float, waited: float) -> None:
    from velado.apps.service.analyst_service import until_tick

    assert until_tick(passed, 0.5) == pytest.approx(waited)
    assert until_tick(passed, 0.0) == 0


def test_the_least_spend_is_public_and_kept(call: Call) -> None:
    for path in ("/v1/answers", "/v1/price"):
        reply = call("POST", path, {"dataset": "people", "sql": COUNT, "spend": "1e-12"})
        assert reply.status == 422 and "at least" in reply.json["what"], reply.text
