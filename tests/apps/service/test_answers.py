"""Asking over HTTP: answers, prices, the budget and its ends, and what each role sees."""

import json
import re
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from velado.apps.service.question_history import sql_of
from velado.data.schema import Schema
from velado.query.sql import parse

from .running import SCHEMA, SECRET, Running, rows, running, token, write_service

COUNT = "SELECT COUNT(*) FROM people"


def test_an_answer_carries_value_interval_promise_and_cost(service: Running) -> None:
    reply = service.ask(COUNT, spend=1)
    assert reply.status == 200
    answer = reply.json
    assert [column["name"] for column in answer["columns"]] == ["count", "count_low", "count_high"]
    value, low, high = answer["rows"][0]
    assert isinstance(value, int) and low <= value <= high and abs(value - 200) < 100
    assert answer["guarantee"]["type"] == "guaranteed" and answer["guarantee"]["most_rows"] == 2
    assert 0 < Fraction(answer["cost"]["spent"]) <= 1


def test_asking_again_gives_the_same_numbers_at_no_cost_to_anybody(service: Running) -> None:
    sql = "SELECT AVG(age) FROM people WHERE city = 'Recife'"
    first = service.ask(sql).json
    spent = service.call("GET", "/v1/budget").json["budgets"][0]["spent"]
    again = service.ask("select avg(AGE) from people where city IN ('Recife')", "bia").json
    assert again["rows"] == first["rows"] and again["question"] == first["question"]
    assert again["stored"] and again["cost"]["spent"] == "0"
    assert service.call("GET", "/v1/budget").json["budgets"][0]["spent"] == spent


@pytest.mark.slow
def test_nothing_computed_from_the_rows_without_noise_leaves(tmp_path: Path) -> None:
    """Fingerprints of the content would let an analyst test guesses of the whole table."""
    seen = []
    for name in ("one", "two"):
        with running(write_service(tmp_path / name)) as service:
            answer = service.ask(COUNT).json
            seen.append(answer["question"])
            assert "version" not in answer["how"]["table"]
            assert not re.search(r'"[0-9a-f]{64}"', json.dumps({**answer, "receipt": ""}))
    # The same question about the same table has another name in another service.
    assert seen[0] != seen[1]


def test_the_price_costs_nothing_and_is_what_is_charged(service: Running) -> None:
    sql = "SELECT SUM(age), COUNT(*) FROM people WHERE sex = 'M'"
    before = service.call("GET", "/v1/budget").json["budgets"][0]["spent"]
    price = service.call("POST", "/v1/price", {"dataset": "people", "sql": sql, "spend": "1/4"}).json
    assert service.call("GET", "/v1/budget").json["budgets"][0]["spent"] == before
    assert price["enough"] and price["plan"]["draws"][0]["scale"] > 0
    answer = service.ask(sql, spend="1/4").json
    assert answer["cost"]["spent"] == price["cost"]["charge"]
    # Whether it is stored depends on whether the table changed: nobody paid to know that.
    again = service.call("POST", "/v1/price", {"dataset": "people", "sql": sql, "spend": 0.25}).json
    later = {"left": None, "questions": None}
    for one in (price, again):
        assert one["questions"] == Fraction(one["left"]["exact"]) // Fraction(one["cost"]["charge"])
    assert "stored" not in price and {**again, **later} == {**price, **later}


@pytest.mark.slow
def test_the_history_names_the_spend_after_a_restart_and_asking_with_it_is_free(tmp_path: Path) -> None:
    file = write_service(tmp_path)
    sql = "SELECT AVG(age) FROM people WHERE sex = 'F'"
    with running(file) as service:
        first = service.ask(sql, spend="1/7").json
        service.ask(COUNT)
        tokens = service.tokens
    # Another default would change what a question without a spend is.
    file.write_text(file.read_text().replace("each = 0.1", "each = 0.2"))
    with running(file, tokens) as service:
        spent = service.call("GET", "/v1/budget").json["budgets"][0]["spent"]
        asked = service.call("GET", "/v1/answers?dataset=people").json["answers"]
        assert [entry["spend"] for entry in asked] == ["1/10", "1/7"]
        replies = [service.ask(entry["sql"], spend=entry["spend"]).json for entry in asked]
        assert all(reply["stored"] for reply in replies) and replies[1]["rows"] == first["rows"]
        assert service.call("GET", "/v1/budget").json["budgets"][0]["spent"] == spent
        assert not service.ask(sql, spend="1/8").json["stored"]


def test_each_value_says_how_it_is_to_be_read_at_the_confidence_asked_for(service: Running) -> None:
    sql = "SELECT MIN(age), MEDIAN(age), COUNT(*) FROM people"
    for path in ("/v1/price", "/v1/answers"):
        reply = service.call("POST", path, {"dataset": "people", "sql": sql, "confidence": 0.9}).json
        low, half, count = (reply.get("how") or reply)["plan"]["values"]
        assert (low["asked"], low["level"], half["level"]) == ("min", "1/100", "1/2")
        assert low["rank_error"]["confidence"] == 0.9 and count["answered_as"] == "number"
    assert service.call("POST", "/v1/price", {"dataset": "people", "sql": sql, "confidence": 2}).status == 422


def test_data_sets_tell_what_is_declared_and_no_closed_column(service: Running) -> None:
    found = service.call("GET", "/v1/datasets").json["datasets"]
    assert [one["name"] for one in found] == ["people"]
    columns = {column["name"]: column for column in found[0]["columns"]}
    assert columns["sex"]["values"] == ["F", "M"] and columns["age"]["bounds"] == [0, 100]
    assert "household" not in columns and not columns["note"]["group_by"]
    # What a question takes when it does not say is no promise; the promise is the whole budget's.
    assert found[0]["each"] == "1/10" and "epsilon" not in found[0]["guarantee"]
    assert found[0]["guarantee"]["budget"]["total"] == "10"


def test_an_analyst_sees_the_own_account_and_an_owner_everybodys(service: Running) -> None:
    service.ask("SELECT COUNT(*) FROM people WHERE age > 50", "bia", spend=0.2)
    analyst = service.call("GET", "/v1/budget", who="bia").json["budgets"][0]
    assert Fraction(analyst["you"]["spent"]) > 0 and "by_analyst" not in analyst and "caps" not in analyst
    owner = service.call("GET", "/v1/budget", who="root").json["budgets"][0]
    assert owner["by_analyst"]["bia"] == analyst["you"]["spent"]
    # The session's own name paid nothing and asked nothing.
    assert "owner" not in owner["by_analyst"]
    history = service.call("GET", "/v1/answers?dataset=people", who="bia").json["answers"]
    assert (
        history[0]["sql"] == 'SELECT COUNT(*) FROM "people" WHERE "age" > 50' and history[0]["spend"] == "1/5"
    )
    assert all("Recife" not in entry["sql"] for entry in history)


def test_what_is_for_owners_is_refused_to_analysts(service: Running) -> None:
    cap = {"dataset": "people", "analyst": "ana", "cap": 5}
    more = {"dataset": "people", "total": 20, "reason": "no"}
    for method, path, body in (
        ("POST", "/v1/caps", cap),
        ("POST", "/v1/budget/raise", more),
        ("GET", "/v1/ledger/verify?dataset=people", None),
        ("GET", "/metrics", None),
    ):
        reply = service.call(method, path, body)
        assert (reply.status, reply.json["code"]) == (403, "role")


def test_metrics_count_and_hold_no_values(service: Running) -> None:
    service.ask("SELECT nonsense FROM people")
    text = service.call("GET", "/metrics", who="root").text
    assert 'velado_refusals_total{code="query-refused"}' in text
    assert 'velado_budget_left{dataset="people",measure="epsilon"}' in text
    assert 'velado_requests_total{route="/v1/answers",status="200"}' in text
    counts = re.findall(r'velado_request_seconds_bucket\{le="[^"]+"\} (\d+)', text)
    assert [int(c) for c in counts] == sorted(int(c) for c in counts)
    assert SECRET not in text and "Recife" not in text


@pytest.mark.slow
def test_metrics_tell_an_owner_of_one_data_set_nothing_of_another(tmp_path: Path) -> None:
    file = write_service(tmp_path)
    (tmp_path / "others.csv").write_text(rows(60, 3), encoding="utf-8")
    other = file.read_text().split("[datasets.people]")[1].replace("people.", "others.")
    file.write_text(file.read_text() + "[datasets.others]" + other)
    with running(file) as service:
        service.ask(COUNT)
        service.call("POST", "/v1/answers", {"dataset": "others", "sql": "SELECT COUNT(*) FROM others"})
        both = service.call("GET", "/metrics", who="root").text
        one = service.call("GET", "/metrics", who=token(file, "eva", "owner", None, "others")).text
    for name, kind in (("people", "fresh"), ("others", "fresh")):
        assert f'velado_answers_total{{dataset="{name}",kind="{kind}"}} 1' in both
    assert 'velado_budget_left{dataset="others"' in one and 'velado_answers_total{dataset="others"' in one
    assert "people" not in one


@pytest.mark.slow
def test_two_data_sets_over_one_file_must_not_have_two_ledgers(tmp_path: Path) -> None:
    file = write_service(tmp_path)
    twin = file.read_text().split("[datasets.people]")[1].replace("people.ledger", "twin.ledger")
    file.write_text(file.read_text() + "[datasets.twin]" + twin)
    with pytest.raises(AssertionError, match="accounted for in another ledger"), running(file):
        pass
    # A copy of the file is the same table.
    (tmp_path / "copy.csv").write_bytes((tmp_path / "people.csv").read_bytes())
    file.write_text(file.read_text().replace(twin, twin.replace("people.csv", "copy.csv")))
    with pytest.raises(AssertionError, match="accounted for in another ledger"), running(file):
        pass


@pytest.mark.slow
def test_caps_raises_and_the_end_of_the_budget(tmp_path: Path) -> None:
    file = write_service(tmp_path, budget="{ epsilon = 1 }", more="caps = { ana = 0.3 }")
    with running(file) as service:
        assert service.ask(COUNT, spend=0.25).status == 200
        refused = service.ask("SELECT SUM(age) FROM people", spend=0.25)
        assert (refused.status, refused.json["code"]) == (402, "budget-exceeded")
        price = service.call("POST", "/v1/price", {"dataset": "people", "sql": "SELECT SUM(age) FROM people"})
        assert not price.json["enough"]
        raised = {"dataset": "people", "analyst": "ana", "cap": "9/10"}
        assert service.call("POST", "/v1/caps", raised, "root").status == 200
        assert service.ask("SELECT SUM(age) FROM people", spend=0.25).status == 200
        assert service.ask("SELECT AVG(age) FROM people", "bia", spend=0.6).status == 402
        lower = {"dataset": "people", "total": 0.5, "reason": "less"}
        assert service.call("POST", "/v1/budget/raise", lower, "root").status == 422
        more = {"dataset": "people", "total": 2, "reason": "second study"}
        assert "service file" in service.call("POST", "/v1/budget/raise", more, "root").json["note"]
        assert service.ask("SELECT AVG(age) FROM people", "bia", spend=0.6).status == 200
        verified = service.call("GET", "/v1/ledger/verify?dataset=people", who="root").json
        assert verified["holds"] and Fraction(verified["spent"]) > 1


@pytest.mark.slow
def test_no_more_is_answered_than_the_budget_pays_however_many_ask(tmp_path: Path) -> None:
    with running(write_service(tmp_path, budget="{ epsilon = 1 }")) as service:
        found: list[int] = []

        def ask(number: int) -> None:
            for i in range(3):
                sql = f"SELECT COUNT(*) FROM people WHERE age > {number * 3 + i}"
                found.append(service.ask(sql, spend=0.125).status)

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [200] * 8 + [402] * 16


@pytest.mark.slow
def test_errors_and_refusals_do_not_depend_on_the_rows(tmp_path: Path) -> None:
    """An empty table, an ordinary one and another answer every question with the same status and the same words."""
    questions = [
        "SELECT COUNT(*) FROM people WHERE age > 99",
        "SELECT AVG(age) FROM people WHERE city = 'Nowhere'",
        "SELECT MAX(age) FROM people WHERE note = 'x'",
        "SELECT * FROM people",
        "SELECT note, COUNT(*) FROM people GROUP BY note",
        "SELECT AVG(note) FROM people",
        "DROP TABLE people",
        "SELECT COUNT(*) FROM people WHERE age = 'x'",
    ]
    told = []
    for name, data in (("a", rows(40)), ("b", rows(300, 5)), ("c", rows(1))):
        with running(write_service(tmp_path / name, data=data)) as service:
            replies = [service.ask(sql) for sql in questions]
            told.append([(r.status, None if r.status == 200 else r.text) for r in replies])
            assert SECRET not in "".join(r.text for r in replies)
    assert told[0] == told[1] == told[2]
    assert [status for status, _ in told[0]] == [200] * 3 + [422] * 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        "SELECT sex, AVG(age), MAX(age) FROM people WHERE NOT (age BETWEEN 3 AND 5.25) GROUP BY sex, city",
        "SELECT QUANTILE(age, 0.25), MEDIAN(age) FROM people WHERE note LIKE '%it''s%' OR city IS NULL",
        "SELECT HISTOGRAM(age, 5) FROM people WHERE city IN ('Recife', 'Belém') AND sex <> 'F'",
    ],
)
def test_a_canonical_query_written_as_sql_means_the_same(sql: str) -> None:
    import tomllib

    schema = Schema.from_dict(tomllib.loads(SCHEMA))
    canonical = parse(sql, schema, "people").canonical()
    assert parse(sql_of(canonical), schema, "people").canonical() == canonical


def test_several_counts_are_priced_and_asked_for_one_charge(service: Running) -> None:
    sql = (
        "SELECT COUNT(*) FROM people WHERE age > 30; SELECT COUNT(*) FROM people WHERE age > 60;\n"
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex;"
    )
    body = {"dataset": "people", "sql": sql, "spend": "1/3"}
    before = service.call("GET", "/v1/budget").json["budgets"][0]["spent"]
    price = service.call("POST", "/v1/workloads/price", body).json
    assert service.call("GET", "/v1/budget").json["budgets"][0]["spent"] == before
    assert price["enough"] and len(price["plan"]["questions"]) == 3 and price["notes"]
    answer = service.call("POST", "/v1/workloads", body).json
    assert answer["cost"]["spent"] == price["cost"]["charge"] and not answer["stored"]
    assert [one["columns"][0] for one in answer["answers"]] == ["count", "count", "sex"]
    for one in answer["answers"]:
        *_, value, low, high = one["rows"][0]
        assert low <= value <= high
    again = service.call("POST", "/v1/workloads", body, "bia").json
    assert again["stored"] and again["cost"]["spent"] == "0" and again["answers"] == answer["answers"]
    assert again["question"] == answer["question"]
    # Nothing that is made from the exact rows leaves.
    assert not re.search(r'"[0-9a-f]{64}"', json.dumps({**answer, "receipt": ""}))
    wrong = service.call("POST", "/v1/workloads", {**body, "sql": f"{COUNT}; SELECT AVG(age) FROM people"})
    assert wrong.status == 422 and "Question 2" in wrong.json["what"]
    wish = {"dataset": "people", "sql": sql, "within": 40}
    assert service.call("POST", "/v1/workloads/price", wish).json["plan"]["within"] == "40"
    assert service.call("POST", "/v1/workloads", {**body, "spend": 100}).status == 402
