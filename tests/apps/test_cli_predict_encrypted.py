"""`velado predict --encrypted` in its four steps: the plain prediction, and nothing shown, answered twice or guessed at."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("cryptography", reason="encryption needs velado[encrypted]")
pytest.importorskip("gmpy2", reason="encryption needs velado[encrypted]")
pytest.importorskip("flint", reason="encryption needs velado[encrypted]")

from velado.apps.cli import run
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.parts import fit_of
from velado.learning.regression.fit import Fit, Solved
from velado.learning.regression.simulate import small_job

pytestmark = pytest.mark.slow  # keys, and passphrases that are slow to try

ASK = ["--encrypted", "ask", "--passphrase-file", "pass"]
READ = ["--encrypted", "read", "--passphrase-file", "pass"]


def model() -> Fit:
    """A logistic model with a number, a category and their product."""
    sex = Bounded("sex=m", (0, 1), column="sex", value="m", among=("f", "m"))
    features = (Bounded("age", (0, 120)), sex, Bounded("age:sex=m", (0, 120), factors=("age", "sex=m")))
    job = small_job(features=features, target=Bounded("ill", (0, 1)), family="logistic")
    return fit_of(job, Solved(coefficients=(-3.25, 0.0421875, 0.3, -1e-7)))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The owner's and the asker's files after offer, ask and answer."""
    folder = tmp_path_factory.mktemp("scores")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("VELADO_LANG", raising=False)
        Path("fit.json").write_text(json.dumps(model().to_dict(), default=str))
        Path("pass").write_text("four words\n")
        Path("rows.csv").write_text("age,sex,name\n31.5,f,x\n80,m,y\n0,m,z\n119.9,f,u\n")
        assert run(["predict", "fit.json", "--encrypted", "offer", "-o", "offer.json", "--quiet"]) == 0
        assert run(["predict", "offer.json", "rows.csv", *ASK, "-o", "question", "--quiet"]) == 0
        answer = ["predict", "fit.json", "question/question.bin", "--encrypted", "answer", "-o", "answer.bin"]
        assert run([*answer, "--quiet"]) == 0
    return folder


@pytest.fixture
def place(asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(asked, tmp_path / "scores")
    monkeypatch.chdir(tmp_path / "scores")
    monkeypatch.delenv("VELADO_LANG", raising=False)
    return tmp_path / "scores"


def test_the_scores_are_the_plain_predictions_and_the_offer_and_question_tell_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(["predict", "offer.json", "answer.bin", *READ, "--question", "question", "-o", "scores.csv"]) == 0
    )
    assert "4 predictions of 'ill'" in capsys.readouterr().out
    assert run(["predict", "fit.json", "rows.csv", "-o", "plain.csv", "--quiet"]) == 0
    scores, plain = (pl.read_csv(name)["predicted ill"].to_numpy() for name in ("scores.csv", "plain.csv"))
    assert np.allclose(scores, plain, rtol=1e-12, atol=0)
    offer = Path("offer.json").read_text()
    assert "0.0421875" not in offer and "-3.25" not in offer and '"age"' in offer
    question = Path("question/question.bin").read_bytes()
    assert b"31.5" not in question and b"119.9" not in question
    # The same rows asked again are other bytes: nobody can compare questions.
    assert run(["predict", "offer.json", "rows.csv", *ASK, "-o", "again", "--quiet"]) == 0
    assert Path("again/question.bin").read_bytes()[400:] != question[400:]


def test_scored_rows_are_counted_warned_of_and_limited_and_no_question_is_answered_twice(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ["predict", "fit.json", "question/question.bin", "--encrypted", "answer"]
    assert run([*answer, "-o", "second.bin"]) == 10
    assert "answered before" in capsys.readouterr().err and not Path("second.bin").exists()
    Path("scores.register").unlink()
    assert run([*answer, "-o", "few.bin", "--limit", "3"]) == 10
    assert "4 rows would be scored, and 3 are allowed" in capsys.readouterr().err
    assert not Path("few.bin").exists() and not Path("scores.register").exists()
    assert run([*answer, "-o", "more.bin", "--limit", "4"]) == 0
    printed = capsys.readouterr()
    assert "4 rows were scored with this model, which has 4 unknowns" in printed.out + printed.err
    Path("scores.register").write_text("{}")
    assert run([*answer, "-o", "damaged.bin"]) == 5 and "damaged" in capsys.readouterr().err


def test_wrong_rows_terms_keys_and_answers_are_refused_in_words(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(arguments: list[str], words: str) -> None:
        capsys.readouterr()
        assert run(arguments) != 0
        told = " ".join(capsys.readouterr().err.split())
        assert words in told and "What to do" in told and "Traceback" not in told

    for rows, words in (
        ("age\n31\n", "sex"),
        ("age,sex\n121,f\n", "Column 'age'"),
        ("age,sex\n31,x\n", "category"),
        ("age,sex\nold,f\n", "age"),
        ("age,sex\n", "row"),
    ):
        Path("bad.csv").write_text(rows)
        refused(["predict", "offer.json", "bad.csv", *ASK, "-o", "never"], words)
    refused(["predict", "fit.json", "rows.csv", *ASK, "-o", "never"], "not an offer")
    refused(["predict", "offer.json", *ASK, "-o", "never"], "A file is missing")
    assert not Path("never").exists()
    data = bytearray(Path("question/question.bin").read_bytes())
    answer = ["predict", "fit.json", "bad.bin", "--encrypted", "answer", "-o", "never.bin"]
    for at, words in ((0, "version"), (5, "other terms"), (36, "rows"), (60, "key"), (-1, "")):
        changed = bytearray(data)
        changed[at] ^= 0xFF
        Path("bad.bin").write_bytes(changed if at >= 0 else data[:-1])
        refused(answer, words)
    refused([*answer[:2], "nowhere.bin", *answer[3:]], "cannot be read")
    assert not Path("never.bin").exists()
    read = ["predict", "offer.json", "answer.bin", *READ, "-o", "never.csv"]
    refused(read, "--question is missing")
    assert run(["predict", "offer.json", "rows.csv", *ASK, "-o", "other", "--quiet"]) == 0
    refused([*read, "--question", "other"], "no answer to this question")
    Path("pass").write_text("other words")
    refused([*read, "--question", "question"], "passphrase")
    assert not Path("never.csv").exists()
