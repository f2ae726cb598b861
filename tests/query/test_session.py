"""A session end to end on the sample hospital: what each mode promises, what it costs, and in which order things happen."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from velado.data.io import read_schema, read_table
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import BudgetExceeded, EngineError, ParameterError, QueryRefused, VeladoError
from velado.query.answer import Answer
from velado.query.budget import Budget, Charge
from velado.query.engines import engine_for_table
from velado.query.session import IN_LEDGER, IN_MEMORY, IN_PROCESS, Session, table_name
from velado.query.store import create_ledger, memory_ledger, open_ledger
from velado.query.unit import Unit


def declared(schema: Schema) -> Schema:
    """The sample's schema with what queries need: the most rows of a patient, public values, steps."""
    more = {
        "cpf": {"max_rows": 4},
        "sexo": {"values": ("F", "M")},
        "desfecho": {"values": ("alta", "óbito", "transferência")},
        "idade": {"step": 1.0},
        "dias_internado": {"step": 1.0},
        "custo_reais": {"step": 0.01},
    }
    return schema.with_columns(replace(c, **more.get(name, {})) for name, c in schema.columns.items())


@pytest.fixture(scope="module")
def hospital() -> Table:
    return read_table(hospital_csv(), declared(read_schema(hospital_schema())))


@pytest.fixture(scope="module")
def exact(hospital: Table) -> pl.DataFrame:
    """The rows that count: at most four of each patient, in file order."""
    kept = hospital.frame.with_columns(pl.int_range(pl.len()).over("cpf").alias("place")).filter(
        pl.col("place") < 4
    )
    return kept.with_columns(pl.col("idade").cast(pl.Int64), pl.col("custo_reais").cast(pl.Float64))


def test_a_count_is_a_whole_number_near_the_rows_that_count(hospital: Table, exact: pl.DataFrame) -> None:
    session = Session(hospital, budget=10)
    answer = session.answer("SELECT COUNT(*) AS n FROM hospital", spend=5)
    assert isinstance(answer.value, int)
    # Scale 4/5: beyond 40 with a chance below 1e-20.
    assert abs(answer.value - exact.height) <= 40
    low, high = answer.interval()
    assert low <= answer.value <= high and high - low < 20


def test_every_kind_of_aggregate_lands_near_its_exact_value(hospital: Table, exact: pl.DataFrame) -> None:
    session = Session(hospital, budget=900)
    women = exact.filter(pl.col("sexo") == "F")
    sql = (
        "SELECT AVG(idade) AS a, SUM(dias_internado) AS s, MEDIAN(idade) AS m FROM hospital WHERE sexo = 'F'"
    )
    row = session.answer(sql, spend=300).frame.row(0, named=True)
    assert abs(row["a"] - women["idade"].mean()) < 0.2
    assert abs(row["s"] - women["dias_internado"].cast(pl.Int64).sum()) < 60
    assert abs(row["m"] - women["idade"].median()) <= 2
    assert row["a_low"] <= row["a"] <= row["a_high"] and row["s_low"] <= row["s"] <= row["s_high"]


def test_every_declared_key_is_answered_even_where_no_row_has_it(hospital: Table) -> None:
    columns = dict(hospital.schema.columns)
    columns["sexo"] = replace(columns["sexo"], values=("F", "M", "nobody"))
    wider = hospital.with_schema(hospital.schema.with_columns(columns.values()))
    frame = (
        Session(wider, budget=50)
        .answer("SELECT sexo, COUNT(*) AS n FROM hospital GROUP BY sexo", spend=40)
        .frame
    )
    assert frame["sexo"].to_list() == ["F", "M", "nobody", None]
    assert abs(frame["n"][2]) < 10 and frame["n"][0] > 100


def test_bounds_answer_for_nothing_and_look_at_no_row(hospital: Table) -> None:
    session = Session(hospital, budget=1, extremes="bound")
    answer = session.answer("SELECT MIN(idade) AS least, MAX(idade) AS most FROM hospital")
    assert answer.frame.row(0, named=True)["least"] == 0 and answer.frame.row(0, named=True)["most"] == 110
    assert answer.cost.spent == 0 and session.state().spent == 0 and session.state().entries == 1


def test_the_unit_is_what_the_schema_declares(hospital: Table) -> None:
    session = Session(hospital, budget=1)
    promise = session.answer("SELECT COUNT(*) FROM hospital").guarantee.to_dict()
    assert session.unit == Unit("cpf", 4)
    assert promise["type"] == "guaranteed" and promise["mode"] == "groups" and promise["most_rows"] == 4
    assert promise["definition"] == "epsilon-differential privacy" and promise["covers"] == IN_MEMORY
    assert "warnings" not in promise


def test_the_promise_names_exactly_what_was_charged(hospital: Table) -> None:
    session = Session(hospital, budget=1)
    answer = session.answer("SELECT COUNT(*), AVG(idade) FROM hospital", spend="1/3")
    charged = Fraction(answer.guarantee.epsilon)
    assert 0 < charged <= Fraction(1, 3) and charged == Fraction(answer.cost.spent)
    assert (
        session.state().spent
        == charged
        == session.price("SELECT COUNT(*), AVG(idade) FROM hospital", "1/3").charge
    )
    assert Fraction(answer.cost.left) == 1 - charged


def test_strict_mode_is_guaranteed_for_unrelated_rows_and_warns_of_the_person_column(hospital: Table) -> None:
    promise = Session(hospital, Unit(), 1).answer("SELECT COUNT(*) FROM hospital").guarantee.to_dict()
    assert (promise["type"], promise["mode"]) == ("guaranteed", "strict")
    assert promise["holds_for"] == "rows that tell nothing of one another"
    assert len(promise["warnings"]) == 1 and "'cpf'" in promise["warnings"][0]


def test_a_schema_without_a_person_gives_strict_without_a_warning(hospital: Table) -> None:
    columns = [replace(c, person=False, max_rows=None) for c in hospital.schema.columns.values()]
    session = Session(hospital.with_schema(hospital.schema.with_columns(columns)), budget=1)
    assert session.unit == Unit()
    assert session.answer("SELECT COUNT(*) FROM hospital").guarantee.warnings is None


def test_a_dependence_bound_makes_the_promise_conditional(hospital: Table) -> None:
    unit = Unit("cpf", 4, Fraction(1, 2))
    promise = Session(hospital, unit, 1).answer("SELECT COUNT(*) FROM hospital").guarantee.to_dict()
    assert promise["type"] == "guaranteed-if" and promise["dependence"] == "1/2"


def test_rho_is_told_with_what_it_implies(hospital: Table) -> None:
    session = Session(hospital, budget=Budget.approximate(1, "1e-9"))
    answer = session.answer("SELECT AVG(idade) FROM hospital")
    assert answer.guarantee.definition == "rho-zCDP" and answer.cost.measure == "rho"
    assert Fraction(answer.guarantee.rho) <= session.budget.total / 10
    assert answer.guarantee.budget["implies"]["epsilon"] <= 1
    assert {draw["mechanism"] for draw in answer.how.plan["draws"]} == {"gaussian"}


def test_the_promise_of_a_durable_ledger_outlasts_the_session(hospital: Table, tmp_path: Path) -> None:
    path, seal = tmp_path / "hospital.ledger", tmp_path / "hospital.seal"
    ledger = create_ledger(path, "hospital", Budget.epsilon(1), seal)
    first = Session(hospital, budget=ledger).answer("SELECT COUNT(*) FROM hospital", spend="0.6")
    assert first.guarantee.covers == IN_LEDGER
    ledger.close()
    again = open_ledger(path, seal)
    session = Session(hospital, budget=again, analyst="another")
    with pytest.raises(BudgetExceeded):
        session.answer("SELECT COUNT(*) FROM hospital WHERE sexo = 'F'", spend="0.6")
    same = session.answer("SELECT COUNT(*) FROM hospital", spend="0.6")
    assert same.stored and same.value == first.value and same.receipt == first.receipt
    again.close()


def test_a_memory_ledger_that_was_passed_in_is_not_called_durable(hospital: Table) -> None:
    session = Session(hospital, budget=memory_ledger("hospital", Budget.epsilon(1)))
    assert session.answer("SELECT COUNT(*) FROM hospital").guarantee.covers == IN_PROCESS


def test_a_ledger_does_not_add_costs_about_different_units(hospital: Table) -> None:
    ledger = memory_ledger("hospital", Budget.epsilon(1))
    Session(hospital, Unit("cpf", 4), ledger).answer("SELECT COUNT(*) FROM hospital")
    with pytest.raises(ParameterError, match="another unit"):
        Session(hospital, Unit(), ledger)
    # Another most is still about the same whole group.
    assert Session(hospital, Unit("cpf", 2), ledger).answer("SELECT COUNT(*) FROM hospital").stored is False


class Watched:
    """A real engine that notes what the ledger had recorded when the rows were looked at."""

    def __init__(self, engine, ledger, fail: bool = False) -> None:
        self.engine, self.ledger, self.fail = engine, ledger, fail
        self.seen: list[Fraction] = []

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def tally(self, where, keys, needs, seconds=None):
        self.seen.append(self.ledger.state().spent)
        if self.fail:
            raise EngineError("The engine did not answer.", "It is gone.", "Ask later.")
        return self.engine.tally(where, keys, needs, seconds)


def watched(hospital: Table, fail: bool = False) -> tuple[Session, Watched]:
    ledger = memory_ledger("hospital", Budget.epsilon(1))
    engine = Watched(engine_for_table(hospital, Unit("cpf", 4)), ledger, fail)
    return Session(engine, budget=ledger, schema=hospital.schema, name="hospital"), engine


def test_the_debit_stands_before_a_row_is_looked_at(hospital: Table) -> None:
    session, engine = watched(hospital)
    answer = session.answer("SELECT COUNT(*) FROM hospital")
    assert engine.seen == [Fraction(answer.cost.spent)] and engine.seen[0] > 0


def test_a_failing_engine_costs_budget_and_says_so(hospital: Table) -> None:
    session, _ = watched(hospital, fail=True)
    with pytest.raises(EngineError, match="stays paid"):
        session.answer("SELECT COUNT(*) FROM hospital")
    assert session.state().spent == session.price("SELECT COUNT(*) FROM hospital").charge > 0


def test_a_refused_question_reaches_neither_ledger_nor_engine(hospital: Table) -> None:
    session, engine = watched(hospital)
    before = session.state()
    for sql in (
        "SELECT nome FROM hospital",
        "DROP TABLE hospital",
        "SELECT COUNT(*) FROM other",
        "SELECT SUM(sexo) FROM hospital",
    ):
        with pytest.raises(QueryRefused):
            session.answer(sql)
    with pytest.raises(BudgetExceeded):
        session.answer("SELECT COUNT(*) FROM hospital", spend=2)
    assert engine.seen == [] and session.state().spent == before.spent == 0


def test_a_price_asks_and_spends_nothing(hospital: Table) -> None:
    session, engine = watched(hospital)
    made = session.price("SELECT AVG(idade) FROM hospital", 0.5)
    assert 0 < made.charge <= Fraction(1, 2) and engine.seen == [] and session.state().entries == 1


def test_without_a_spend_a_question_takes_a_tenth(hospital: Table) -> None:
    session = Session(hospital, budget=1)
    asked = [f"SELECT COUNT(*) FROM hospital WHERE idade > {age}" for age in range(11)]
    for sql in asked[:10]:
        session.answer(sql)
    with pytest.raises(BudgetExceeded):
        session.answer(asked[10])


def test_an_analyst_with_a_cap_stops_at_it(hospital: Table) -> None:
    ledger = memory_ledger("hospital", Budget.epsilon(1))
    ledger.set_cap("maria", Fraction(1, 10))
    session = Session(hospital, budget=ledger)
    session.answer("SELECT COUNT(*) FROM hospital", spend="0.1", analyst="maria")
    with pytest.raises(BudgetExceeded):
        session.answer("SELECT COUNT(*) FROM hospital WHERE sexo = 'F'", spend="0.1", analyst="maria")
    assert (
        session.answer("SELECT COUNT(*) FROM hospital WHERE sexo = 'F'", spend="0.1", analyst="joão").stored
        is False
    )
    assert (
        session.answer("SELECT COUNT(*) FROM hospital WHERE sexo = 'F'", spend="0.1", analyst="maria").stored
        is True
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"budget": None},
        {"budget": 0},
        {"budget": -1},
        {"budget": float("nan")},
        {"budget": 1, "unit": Unit("nobody", 3)},
        {"budget": 1, "analyst": ""},
        {"budget": 1, "analyst": "a\nb"},
        {"budget": 1, "each": "much"},
        {"budget": 1, "each": 0},
        {"budget": 1, "extremes": "exact"},
        {"budget": 1, "name": ""},
    ],
)
def test_senseless_settings_are_named(hospital: Table, settings) -> None:
    if settings.get("name") == "":
        assert Session(hospital, **settings).name == "hospital"
        return
    with pytest.raises(VeladoError):
        Session(hospital, **settings).answer("SELECT COUNT(*) FROM hospital")


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 2, float("nan")])
def test_a_confidence_lies_between_zero_and_one(hospital: Table, confidence: float) -> None:
    session = Session(hospital, budget=1)
    with pytest.raises(ParameterError):
        session.answer("SELECT COUNT(*) FROM hospital", confidence=confidence)
    assert session.state().spent == 0


@pytest.mark.parametrize("spend", [0, -1, float("nan"), float("inf"), "x"])
def test_a_spend_is_a_positive_number(hospital: Table, spend) -> None:
    session = Session(hospital, budget=1)
    with pytest.raises(VeladoError):
        session.answer("SELECT COUNT(*) FROM hospital", spend=spend)
    assert session.state().spent == 0


def test_an_engine_needs_a_schema_and_the_same_unit(hospital: Table) -> None:
    engine = engine_for_table(hospital, Unit("cpf", 4))
    with pytest.raises(ParameterError, match="schema"):
        Session(engine, budget=1)
    with pytest.raises(ParameterError, match="unit"):
        Session(engine, Unit("cpf", 2), 1, schema=hospital.schema)


def test_the_table_is_named_after_its_file() -> None:
    assert [
        table_name(n) for n in ("a/patients.csv", "x.parquet", "plain", ".csv", "y.CSV.gz", "z.sav", "v1.2")
    ] == [
        "patients",
        "x",
        "plain",
        "table",
        "y",
        "z",
        "v1.2",
    ]


def test_an_answer_survives_json_with_every_bit(hospital: Table) -> None:
    session = Session(hospital, budget=5)
    answer = session.answer("SELECT sexo, AVG(idade) AS a, COUNT(*) AS n FROM hospital GROUP BY sexo")
    again = Answer.from_dict(__import__("json").loads(answer.to_json()))
    assert again.frame.equals(answer.frame) and again.frame.schema == answer.frame.schema
    assert again.to_dict() == answer.to_dict() and again.receipt == answer.receipt


def test_neither_repr_nor_ledger_text_shows_more_than_the_question(hospital: Table) -> None:
    session = Session(hospital, budget=1)
    assert "hospital" in repr(session) and len(repr(session)) < 80
    charge = Charge("a", "b", "c", Fraction(1))
    assert charge.cost == 1


def test_adult_answers_as_the_declared_groups_promise(data_folder: Path) -> None:
    path = data_folder / "adult" / "adult_clean.csv"
    frame = pl.read_csv(path, infer_schema=False)
    names = {"age": {"kind": "numeric", "bounds": [17, 90], "step": 1, "role": "quasi"}}
    columns = {name: names.get(name, {"role": "other", "kind": "categorical"}) for name in frame.columns}
    table = read_table(path, Schema.from_dict({"columns": columns}))
    session = Session(table, budget=100, name="adult")
    answer = session.answer("SELECT COUNT(*) AS n, AVG(age) AS a FROM adult WHERE age >= 40", spend=20)
    old = frame.select(pl.col("age").cast(pl.Float64)).filter(pl.col("age") >= 40)
    assert abs(answer.frame["n"][0] - old.height) < 20
    assert abs(answer.frame["a"][0] - old["age"].mean()) < 0.1
