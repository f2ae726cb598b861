"""What owners manage over HTTP: tokens, data sets from a folder, budgets; and everybody else is refused by the one check."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from velado.apps.service.hosted_datasets import AddedDatasets
from velado.apps.service.tokens import read_tokens
from velado.errors import InputError

from .running import SECRET, Running, running, token, with_folder

pytestmark = pytest.mark.slow  # processes
WARDS = {"dataset": "wards", "file": "more.csv", "schema": "more.toml", "epsilon": "1/2"}


@pytest.fixture(scope="module")
def open_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    file = with_folder(tmp_path_factory.mktemp("owner"))
    tokens = {
        "root": token(file, "root", "owner"),
        "ana": token(file, "ana"),
        "some": token(file, "some", "owner", None, "people"),
    }
    with running(file, tokens) as started:
        yield started


ROUTES = [
    ("GET", "/v1/tokens", None),
    ("POST", "/v1/tokens", {"analyst": "x", "role": "owner"}),
    ("POST", "/v1/tokens/revoke", {"token": "0"}),
    ("GET", "/v1/files", None),
    ("POST", "/v1/datasets", WARDS),
    ("POST", "/v1/datasets/remove", {"dataset": "people"}),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
@pytest.mark.parametrize("who", ["ana", "some"])
def test_only_an_owner_of_everything_manages(
    open_service: Running, method: str, path: str, body: object, who: str
) -> None:
    before = (open_service.folder / "tokens.json").read_bytes()
    reply = open_service.call(method, path, body, who)
    assert (reply.status, reply.json["code"]) == (403, "role")
    assert open_service.call(method, path, body, None).status == 401
    assert (open_service.folder / "tokens.json").read_bytes() == before
    assert not (open_service.folder / "wards.ledger").exists()


def test_the_role_is_checked_in_one_place() -> None:
    folder = Path(__file__).parents[3] / "src" / "velado" / "apps" / "service"
    checks = [
        file.name
        for file in folder.glob("*.py")
        if re.search(r"role [!=]= \"owner\"", file.read_text("utf-8"))
    ]
    # The second only tells the owner more of the budget, and the page whether to show its forms.
    assert sorted(checks) == ["analyst_api.py", "analyst_service.py"]


def test_a_token_is_told_once_kept_as_a_hash_and_ends_at_once(open_service: Running) -> None:
    made = open_service.call(
        "POST", "/v1/tokens", {"analyst": "eva", "days": 3, "datasets": ["people"]}, "root"
    )
    assert made.status == 200 and made.json["role"] == "analyst"
    text, number = made.json["text"], made.json["id"]
    file = open_service.folder / "tokens.json"
    assert text not in file.read_text("utf-8") and "hash" not in made.json
    assert open_service.ask("SELECT COUNT(*) FROM people", text).status == 200
    listed = open_service.call("GET", "/v1/tokens", who="root")
    assert text not in listed.text and all(one.hash not in listed.text for one in read_tokens(file).tokens)
    assert {"id": number, "analyst": "eva", "state": "valid"}.items() <= next(
        one for one in listed.json["tokens"] if one["id"] == number
    ).items()
    assert open_service.call("POST", "/v1/tokens/revoke", {"token": number}, "root").json == {
        "revoked": [number]
    }
    assert open_service.ask("SELECT COUNT(*) FROM people", text).status == 401
    # By id alone, never the own one, and only data sets that are there.
    assert open_service.call("POST", "/v1/tokens/revoke", {"token": "ana"}, "root").status == 422
    own = next(one["id"] for one in listed.json["tokens"] if one["analyst"] == "root")
    assert "itself" in open_service.call("POST", "/v1/tokens/revoke", {"token": own}, "root").json["what"]
    for wrong in ({"analyst": ""}, {"analyst": "x", "days": 0}, {"analyst": "x", "role": "king"}):
        assert open_service.call("POST", "/v1/tokens", wrong, "root").status == 422
    assert open_service.call("POST", "/v1/tokens", {"analyst": "x", "datasets": ["no"]}, "root").status == 404
    audit = (open_service.folder / "audit.jsonl").read_text("utf-8")
    assert '"token-add"' in audit and '"token-revoke"' in audit and text not in audit


@pytest.mark.parametrize(
    "change",
    [
        {"file": "../people.csv"},
        {"file": "/etc/passwd"},
        {"file": "out.csv"},
        {"schema": "../schema.toml"},
        {"file": "none.csv"},
        {"schema": "more.csv"},
        {"dataset": "people"},
        {"dataset": "a b"},
        {"dataset": "x;--"},
        {"epsilon": None},
        {"rho": 1},
        {"epsilon": 0},
        {"file": None},
        {"schema": None},
        {"surprise": 1},
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_and_nothing_is_kept(
    open_service: Running, change: dict[str, object]
) -> None:
    body = {key: value for key, value in {**WARDS, "dataset": "bad", **change}.items() if value is not None}
    reply = open_service.call("POST", "/v1/datasets", body, "root", Accept_Language="pt")
    assert reply.status == 422 and SECRET not in reply.text
    english = open_service.call("POST", "/v1/datasets", body, "root", Accept_Language="en")
    assert english.json["code"] == reply.json["code"] and english.json["why"] != reply.json["why"]
    names = [one["name"] for one in open_service.call("GET", "/v1/datasets", who="root").json["datasets"]]
    assert "bad" not in names and not (open_service.folder / "bad.ledger").exists()
    assert "bad" not in AddedDatasets.read(open_service.folder / "datasets.json").added


def test_a_data_set_is_added_raised_taken_out_put_back_and_there_after_a_restart(tmp_path: Path) -> None:
    file = with_folder(tmp_path)
    with running(file) as service:
        files = service.call("GET", "/v1/files", who="root").json
        assert files == {
            "open": True,
            "tables": ["more.csv", "out.csv"],
            "schemas": ["more.toml"],
            "taken_out": [],
        }
        assert service.call("POST", "/v1/datasets", WARDS, "root").status == 200
        body = {"dataset": "wards", "sql": "SELECT COUNT(*) FROM wards", "within": 40}
        first = service.call("POST", "/v1/answers", body)
        assert first.status == 200 and first.json["how"]["plan"]["within"] == "40"
        more = {"dataset": "wards", "total": 0.75, "reason": "second study"}
        raised = service.call("POST", "/v1/budget/raise", more, "root")
        assert raised.status == 200 and "note" not in raised.json
        for name in ("wards", "people"):
            assert service.call("POST", "/v1/datasets/remove", {"dataset": name}, "root").status == 200
        assert service.call("POST", "/v1/answers", body).status == 404
        assert service.call("GET", "/v1/budget", who="root").json == {"budgets": []}
        again = {**WARDS, "dataset": "second"}
        # The table has its one budget, whatever it is called.
        assert "another ledger" in service.call("POST", "/v1/datasets", again, "root").json["what"]
        assert service.call("POST", "/v1/datasets", {"dataset": "wards"}, "root").status == 200
        code, log = service.stop()
        assert code == 0 and SECRET not in log
        tokens = service.tokens
    with running(file, tokens) as service:
        assert [one["name"] for one in service.call("GET", "/v1/datasets").json["datasets"]] == ["wards"]
        reply = service.call("POST", "/v1/answers", body).json
        assert reply["stored"] and reply["rows"] == first.json["rows"]
        assert service.call("GET", "/v1/budget").json["budgets"][0]["budget"]["total"] == "3/4"
        assert service.call("GET", "/v1/files", who="root").json["taken_out"] == ["people"]
        asked = service.call("GET", "/v1/answers?dataset=wards").json["answers"][0]
        assert (asked["within"], asked["confidence"]) == ("40", 0.95)
    assert (tmp_path / "datasets.json").stat().st_mode & 0o077 == 0


def test_two_workers_know_of_what_one_was_told(tmp_path: Path) -> None:
    with running(with_folder(tmp_path), None, "--workers", "2") as service:
        assert service.call("POST", "/v1/datasets", WARDS, "root").status == 200
        names = [
            [one["name"] for one in service.call("GET", "/v1/datasets").json["datasets"]] for _ in range(12)
        ]
        assert all(one == ["people", "wards"] for one in names)


def test_without_a_folder_nothing_can_be_added(service: Running) -> None:
    reply = service.call("POST", "/v1/datasets", WARDS, "root")
    assert reply.status == 422 and "folder" in reply.json["what"]
    assert service.call("GET", "/v1/files", who="root").json["open"] is False


def test_a_price_by_accuracy_says_so_and_a_query_is_taken_apart(service: Running) -> None:
    body = {"dataset": "people", "sql": "SELECT COUNT(*) FROM people WHERE age > 60", "within": "25"}
    price = service.call("POST", "/v1/price", body).json
    assert (
        price["notes"][0] == "count: off by up to ±25 (95%)."
        and price["plan"]["values"][0]["half_width"] == 25
    )
    told = service.call("POST", "/v1/price", body, Accept_Language="pt").json["notes"][0]
    assert told == "count: erra até ±25 (95%)."
    for wrong in ("0", "x", -1, "5%"):
        assert service.call("POST", "/v1/price", {**body, "within": wrong}).status == 422
    text = {key: body[key] for key in ("dataset", "sql")}
    assert service.call("POST", "/v1/parse", text).json == {
        "query": {
            "table": "people",
            "aggregates": [["count", None, None, None]],
            "where": [">", "age", ["number", "60"]],
            "keys": [],
        },
        "sql": 'SELECT COUNT(*) FROM "people" WHERE "age" > 60',
    }
    assert service.call("POST", "/v1/parse", {**text, "sql": "DROP TABLE people"}).status == 422
    assert service.call("POST", "/v1/parse", text, None).status == 401


@pytest.mark.parametrize("text", ["", "[]", '{"added": []}', '{"added": {"x": 1}}', '{"taken_out": 3}'])
def test_a_file_of_added_data_sets_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "datasets.json").write_text(text, "utf-8")
    with pytest.raises(InputError, match="added data sets"):
        AddedDatasets.read(tmp_path / "datasets.json")
    assert json.dumps(dict(AddedDatasets.read(tmp_path / "none.json").added)) == "{}"
