"""The audit file: it only grows, its lines are whole, and what cannot be written down is not answered."""

import json
import resource
from fractions import Fraction
from pathlib import Path

import pytest

from velado.apps.service.analyst_service import AuditFile, AuditLine, coarse
from velado.errors import OutputError

from .running import running, write_service

COUNT = "SELECT COUNT(*) FROM people"


def test_durations_are_told_coarsely_and_the_audit_file_only_grows(tmp_path: Path) -> None:
    assert [coarse(s) for s in (0.01, 0.099, 0.5, 5, 50, 500)] == [
        "<0.1s",
        "<0.1s",
        "<1s",
        "<10s",
        "<100s",
        ">=100s",
    ]
    file = tmp_path / "audit.jsonl"
    file.write_text("before\n")
    audit = AuditFile(file)
    audit.write(AuditLine("answer", "answered", analyst="ana\nmallory", duration=coarse(0.2)))
    audit.close()
    with pytest.raises(OutputError, match="closed"):
        audit.write(AuditLine("answer", "late"))
    lines = file.read_text().splitlines()
    assert lines[0] == "before" and len(lines) == 2 and "ana\\nmallory" in lines[1]
    with pytest.raises(OutputError):
        AuditFile(tmp_path / "nowhere" / "audit.jsonl")


def test_a_line_that_is_cut_off_is_an_error_and_spoils_no_other(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    audit = AuditFile(file)
    audit.write(AuditLine("answer", "first"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 10, hard))
    try:
        with pytest.raises(OutputError, match="could not be written"):
            audit.write(AuditLine("answer", "second"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    audit.write(AuditLine("answer", "third"))
    audit.close()
    lines = file.read_text().splitlines()
    assert len(lines) == 3 and len(lines[1]) == 10
    assert [json.loads(lines[n])["outcome"] for n in (0, 2)] == ["first", "third"]


@pytest.mark.slow
def test_what_cannot_be_written_down_is_not_answered_and_costs_nothing(tmp_path: Path) -> None:
    """A full disk: no question, cap or raise goes through; what spends nothing still works."""
    file = write_service(tmp_path)
    file.write_text('audit = "/dev/full"\n' + file.read_text())
    with running(file) as service:
        refused = service.ask(COUNT)
        assert (refused.status, refused.json["code"]) == (503, "audit")
        cap = {"dataset": "people", "analyst": "ana", "cap": 5}
        more = {"dataset": "people", "total": 20, "reason": "more"}
        assert service.call("POST", "/v1/caps", cap, "root").status == 503
        assert service.call("POST", "/v1/budget/raise", more, "root").status == 503
        assert service.call("POST", "/v1/price", {"dataset": "people", "sql": COUNT}).status == 200
        assert service.call("GET", "/v1/budget", who="velado-forged").status == 401
        account = service.call("GET", "/v1/budget", who="root").json["budgets"][0]
        assert Fraction(account["spent"]) == 0 and account["caps"] == {}
        assert Fraction(account["budget"]["total"]) == 10
        code, log = service.stop()
    assert code == 0 and "audit file could not be written" in log


@pytest.mark.slow
def test_both_lines_of_a_question_carry_one_id(tmp_path: Path) -> None:
    with running(write_service(tmp_path)) as service:
        service.ask(COUNT)
        service.ask("SELECT nonsense FROM people")
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [line["outcome"] for line in lines] == ["asked", "answered", "asked", "query-refused"]
    assert lines[0]["request"] == lines[1]["request"] != lines[2]["request"] == lines[3]["request"]
    assert lines[0]["analyst"] == "ana" and lines[0]["dataset"] == "people" and "cost" not in lines[0]
