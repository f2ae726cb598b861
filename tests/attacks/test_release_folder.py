"""What an attacker with the folder that left can compute: not the order, not the noise, not the withheld rows."""

import hashlib
import json
import stat
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import velado
from velado.data.encode import encode
from velado.data.io import read_table
from velado.data.keys import Key, owner_key, state_folder
from velado.data.schema import Column, Schema
from velado.data.table_bytes import csv_bytes
from velado.errors import ParameterError, SchemaError, VeladoError
from velado.randomness import KeyedDraws, seeded
from velado.release.anonymize import anonymize
from velado.release.methods import METHODS, Mondrian
from velado.release.operations import Permute, Perturb
from velado.release.side_doors.row_order import sorted_by
from velado.study.run import apply_recipe, publish

from ..covering import one_in

KEY, OTHER = Key(bytes(range(32))), Key(bytes(range(1, 33)))
SCHEMA = Schema(
    {
        "age": Column("age", "quasi", "numeric"),
        "sex": Column("sex", "quasi"),
        "cost": Column("cost", "other", "numeric"),
        "ill": Column("ill", "sensitive"),
    }
)


def people(rows: int = 400, seed: int = 3, ordered: bool = False) -> pl.DataFrame:
    random = seeded(seed)
    frame = pl.DataFrame(
        {
            "age": random.integers(0, 100, rows),
            "sex": random.choice(["F", "M"], rows),
            "cost": random.integers(100, 900, rows),
            "ill": random.choice(["flu", "hiv", "gout"], rows),
        }
    )
    return frame.sort("age", "sex") if ordered else frame


def test_the_order_of_a_sorted_table_is_gone() -> None:
    frame = people(1000, ordered=True)
    release = anonymize(frame, SCHEMA, Mondrian(), key=KEY, k=10)
    # The attacker knows that the input was sorted by age and reads the place of a row as its rank.
    true = frame.get_column("age").to_numpy()[release.rows]
    assert abs(np.corrcoef(true, np.arange(1000))[0, 1]) < 0.15
    assert release.aligned[np.argsort(np.argsort(release.rows))].equals(release.frame)


def test_two_releases_of_one_file_share_no_order() -> None:
    frame = people()
    one, two = (anonymize(frame, SCHEMA, Mondrian(), key=KEY, k=k).rows for k in (5, 10))
    assert int((one == two).sum()) < 10


def test_the_same_input_settings_and_key_give_the_same_bytes_and_another_key_does_not(tmp_path: Path) -> None:
    frame = people()
    folders = [
        publish(
            frame,
            SCHEMA,
            Mondrian(),
            out=tmp_path / name,
            key=key,
            operations=[Perturb("cost", scale=9.0)],
            k=5,
        )
        for name, key in (("a", KEY), ("b", KEY), ("c", OTHER))
    ]
    content = [
        {
            path.relative_to(done.folder): path.read_bytes()
            for path in sorted(done.folder.rglob("*"))
            if path.is_file()
        }
        for done in folders
    ]
    assert content[0] == content[1]
    assert content[0][Path("release/table.csv")] != content[2][Path("release/table.csv")]


def test_a_method_that_keeps_the_order_is_refused_where_the_order_tells_something() -> None:
    with pytest.raises(ParameterError, match="'age'"):
        anonymize(people(ordered=True), SCHEMA, Mondrian(), keep_order=True, k=5)
    kept = anonymize(people(), SCHEMA, Mondrian(), keep_order=True, k=5)
    assert kept.frame.equals(kept.aligned) and any("order" in text for text in kept.warnings)


@pytest.mark.parametrize("by", [["age"], ["sex"], ["sex", "age"], ["cost"]])
def test_an_order_is_called_sorted_only_by_what_it_was_sorted_by(by: list[str]) -> None:
    table = read_table(people(600).sort(by, descending=True), SCHEMA)
    found = sorted_by(encode(table))
    assert found in (by if by != ["cost"] else [None])


@pytest.mark.parametrize("tables", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_a_shuffled_table_is_hardly_ever_called_sorted(tables: int) -> None:
    calls = [sorted_by(encode(read_table(people(60, seed), SCHEMA))) for seed in range(tables)]
    assert calls.count(None) == tables


@pytest.mark.parametrize("operation", [Permute("cost"), Perturb("cost", scale=50.0)])
def test_noise_cannot_be_redone_from_the_folder(tmp_path: Path, operation: Permute | Perturb) -> None:
    frame = people(500)
    done = publish(frame, SCHEMA, Mondrian(), out=tmp_path / "out", operations=[operation], key=KEY, k=5)
    manifest = json.loads((done.public / "manifest.json").read_text())
    # With what the manifest says the attacker draws again, by every generator of ours that takes no key.
    published = done.release.aligned.get_column("cost").cast(pl.Float64).to_numpy()
    true = frame.get_column("cost").to_numpy()
    random = seeded(manifest["how"]["seed"], "operation", "0", operation.name)
    if isinstance(operation, Permute):
        back = np.empty(500)
        back[random.permutation(500)] = published
        assert int((back == true).sum()) < 25
    else:
        assert int((np.abs(published - random.laplace(0.0, 50.0, 500) - true) <= 1).sum()) < 40
    assert "seed" not in json.dumps(manifest["how"]["operations"])


def test_noise_is_the_same_on_the_same_table_and_another_on_the_next() -> None:
    frame = people(500)
    noise = []
    for table in (frame, frame, frame.with_columns(cost=pl.col("cost") + (pl.int_range(500) == 7))):
        release = anonymize(table, SCHEMA, Mondrian(), operations=[Perturb("cost", scale=50.0)], key=KEY, k=5)
        noise.append(release.aligned.get_column("cost").cast(pl.Int64) - table.get_column("cost"))
    assert noise[0].equals(noise[1])
    assert int((noise[0] == noise[2]).sum()) < 40


def test_no_fingerprint_in_the_folder_lets_a_guess_be_tested(tmp_path: Path) -> None:
    frame = people(60)
    path = tmp_path / "people.csv"
    path.write_bytes(csv_bytes(frame))
    done = publish(path, SCHEMA, Mondrian(), out=tmp_path / "out", key=KEY, k=5)
    plain = {hashlib.sha256(data).hexdigest() for data in (path.read_bytes(), csv_bytes(frame))}
    for file in done.public.iterdir():
        text = file.read_text("utf-8")
        assert not any(digest in text for digest in plain)
    assert hashlib.sha256(path.read_bytes()).hexdigest() not in (done.private / "recipe.toml").read_text()
    manifest = json.loads((done.public / "manifest.json").read_text())
    assert manifest["input"]["keyed_sha256"] == KEY.digest(hashlib.sha256(path.read_bytes()).digest())
    assert KEY.secret.hex() not in json.dumps(manifest)


@pytest.mark.parametrize("kind", one_in(3, METHODS, lambda kind: kind.name))
def test_the_manifest_holds_no_figure_by_which_a_withheld_row_could_be_found(
    kind: type, tmp_path: Path
) -> None:
    """Two tables that differ in one suppressed row alone have manifests that differ in keyed fingerprints alone."""
    frame = people(120).with_columns(age=pl.col("age").cast(pl.String))
    schema = Schema(
        {**SCHEMA.columns, "age": Column("age", "quasi", "numeric", missing="suppress", bounds=(0, 99))}
    )
    documents = []
    for cost in (150, 850):
        withheld = pl.DataFrame({"age": [""], "sex": ["F"], "cost": [cost], "ill": ["flu"]})
        table = pl.concat([frame, withheld.cast(frame.schema)])
        done = publish(table, schema, kind(), out=tmp_path / f"{cost}", suppression=0.05, key=KEY)  # type: ignore[call-arg]
        document = json.loads((done.public / "manifest.json").read_text())
        assert "notes" not in document["how"] and set(document["metrics"]) == {"rows", "ncp", "domain"}
        del document["input"]["keyed_sha256"]
        documents.append(document)
    assert documents[0] == documents[1]


def test_what_stays_is_readable_by_its_owner_alone_and_nothing_of_it_leaves(tmp_path: Path) -> None:
    done = publish(people(), SCHEMA, Mondrian(), out=tmp_path / "out", key=KEY, k=5)
    assert stat.S_IMODE(done.private.stat().st_mode) == 0o700
    private = sorted(path.name for path in done.private.iterdir())
    assert private == ["measured.json", "owner.key", "recipe.toml", "report.html", "rows.csv"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in done.private.iterdir())
    assert sorted(path.name for path in done.public.iterdir()) == ["about.html", "manifest.json", "table.csv"]
    page = (done.public / "about.html").read_text("utf-8")
    assert "100.0%" not in page  # the risk before, which speaks of the original


def test_the_owners_key_is_made_once_for_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    first = owner_key()
    path = state_folder() / "owner.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert owner_key() == first and str(first.secret) not in repr(first)
    path.chmod(0o644)
    with pytest.raises(ParameterError, match="read by others"):
        owner_key()


def test_the_recipe_and_key_of_a_folder_repeat_the_release(tmp_path: Path) -> None:
    frame = people()
    done = publish(
        frame, SCHEMA, Mondrian(), out=tmp_path / "out", operations=[Permute("cost")], key=KEY, k=5
    )
    again = apply_recipe(
        done.private / "recipe.toml", frame, tmp_path / "again", key=done.private / "owner.key"
    )
    assert (again.public / "table.csv").read_bytes() == (done.public / "table.csv").read_bytes()


def test_a_recipe_embeds_only_taxonomies_it_uses(tmp_path: Path) -> None:
    (tmp_path / "levels.csv").write_text("F;*\nM;*\n")
    (tmp_path / "notes.csv").write_text("password;hunter2\n")
    (tmp_path / "schema.toml").write_text(
        '[columns.age]\nrole = "quasi"\nkind = "numeric"\n[columns.sex]\nrole = "quasi"\ntaxonomy = "levels.csv"\n'
        '[columns.cost]\nrole = "other"\ntaxonomy = "notes.csv"\n[columns.ill]\nrole = "sensitive"\n'
    )
    done = publish(people(), tmp_path / "schema.toml", Mondrian(), out=tmp_path / "out", key=KEY, k=5)
    recipe = (done.private / "recipe.toml").read_text()
    assert "hunter2" not in recipe and "F;*" in recipe
    (tmp_path / "schema.toml").write_text(
        '[columns.age]\nrole = "quasi"\nkind = "numeric"\n[columns.sex]\nrole = "quasi"\ntaxonomy = "../secret"\n'
        '[columns.cost]\nrole = "other"\n[columns.ill]\nrole = "sensitive"\n'
    )
    with pytest.raises(VeladoError):
        publish(people(), tmp_path / "schema.toml", Mondrian(), out=tmp_path / "other", key=KEY, k=5)


def test_keyed_draws_have_their_distributions() -> None:
    draws = KeyedDraws(bytes(range(32)))
    share = draws.uniform(2.0, 4.0, 200_000)
    assert abs(share.mean() - 3.0) < 0.01 and share.min() > 2.0 and share.max() < 4.0
    noise = draws.laplace(1.0, 3.0, 200_000)
    assert abs(np.median(noise) - 1.0) < 0.05 and abs(np.abs(noise - 1.0).mean() - 3.0) < 0.05
    places = np.mean([KeyedDraws(bytes([i]) * 32).permutation(20) for i in range(250)], axis=0)
    assert np.abs(places - 9.5).max() < 2.0


def test_the_python_door_takes_what_people_pass() -> None:
    frame = people()
    assert velado.anonymize(frame, k=5).verdicts[0].needed == 5
    assert velado.anonymize(frame, SCHEMA, "mondrian", k=7).goal.k == 7
    assert velado.anonymize(frame, SCHEMA, Mondrian, k=4).method == Mondrian()
    assert velado.inspect(frame).rows == 400


@pytest.mark.parametrize(
    "arguments",
    [
        {"schema": 3},
        {"schema": {"age": "quasi"}},
        {"method": 5},
        {"method": "mondriaan"},
        {"guarantees": "l-diversty"},
        {"guarantees": ["l-diversity", 5]},
        {"guarantees": None},
        {"k": "5"},
        {"k": True},
        {"k": 2.5},
        {"k": 1},
        {"per": "people"},
        {"seed": "x"},
        {"suppression": "much"},
        {"operations": "mask"},
        {"key": 17},
        {"key": "no such file"},
    ],
)
def test_wrong_arguments_get_three_sentences(arguments: dict[str, object]) -> None:
    with pytest.raises((ParameterError, SchemaError)) as caught:
        release = velado.anonymize(people(), **{"schema": SCHEMA, **arguments})  # type: ignore[arg-type]
        assert release.frame.height  # a key is looked for when the order is drawn
    assert all((caught.value.what, caught.value.why, caught.value.fix))


def test_signatures_are_real() -> None:
    import inspect

    import velado.measures.utility
    import velado.release.methods  # the package now stands where the function did

    names = list(inspect.signature(velado.anonymize).parameters)
    assert names[:4] == ["source", "schema", "method", "guarantees"] and "k" in names
    assert "release" in inspect.signature(velado.measure).parameters


def test_a_name_that_was_escaped_is_told_and_verified(tmp_path: Path) -> None:
    frame = people().rename({"cost": "=cost"})
    schema = Schema(
        {
            **{n: c for n, c in SCHEMA.columns.items() if n != "cost"},
            "=cost": Column("=cost", "other", "numeric"),
        }
    )
    done = publish(frame, schema, Mondrian(), out=tmp_path / "out", formulas="escape", key=KEY, k=5)
    manifest = json.loads((done.public / "manifest.json").read_text())
    assert manifest["output"]["escaped_names"] == {"=cost": "'=cost"}
    assert velado.verify(done.public / "table.csv", schema, [velado.KAnonymity(5)]).holds


def outlier(rows: int = 300) -> pl.DataFrame:
    random = seeded(5)
    return pl.DataFrame(
        {
            "pay": np.r_[random.integers(1000, 9000, rows - 1), [7_654_321]],
            "zone": np.r_[random.choice(["n", "s"], rows - 1), ["w"]],
            "ill": random.choice(["flu", "gout"], rows),
        }
    )


PAY = Schema(
    {
        "pay": Column("pay", "quasi", "numeric"),
        "zone": Column("zone", "quasi"),
        "ill": Column("ill", "sensitive"),
    }
)


@pytest.mark.parametrize(
    "kind", [kind for kind in METHODS if kind.promise == "guaranteed"], ids=lambda k: k.name
)
def test_no_interval_end_is_the_value_of_somebody_suppressed(kind: type) -> None:
    release = anonymize(outlier(), PAY, kind(), k=5, suppression=0.05, key=KEY)
    if release.kept[-1]:
        return  # this method hides the outlier in a group
    assert not any("7654321" in text for text in release.frame.get_column("pay").unique())
    # Nor do loss and widths tell how far out it lies.
    other = outlier().with_columns(pay=pl.when(pl.col("pay") > 10_000).then(99_999).otherwise(pl.col("pay")))
    twin = anonymize(other, PAY, kind(), k=5, suppression=0.05, key=KEY)
    if twin.aligned.equals(release.aligned):
        assert twin.public_losses == pytest.approx(release.public_losses, abs=1e-9)


def test_a_mean_taken_over_a_suppressed_row_is_refused() -> None:
    with pytest.raises(ParameterError, match="suppressed"):
        anonymize(outlier(), PAY, velado.DAS(), [velado.KAnonymity(5)], suppression=0.05, key=KEY)


@pytest.mark.parametrize("operation", [Permute("age"), Perturb("age", scale=20.0)])
def test_noise_on_a_quasi_identifier_hides_no_copy_of_it_and_guarantees_nothing(
    operation: Permute | Perturb,
) -> None:
    frame = people().with_columns(again=pl.col("age"))
    schema = Schema({**SCHEMA.columns, "again": Column("again", "other", "numeric")})
    with pytest.raises(VeladoError, match="again"):
        anonymize(frame, schema, Mondrian(), operations=[operation], key=KEY, k=5)
    release = anonymize(people(), SCHEMA, Mondrian(), operations=[operation], key=KEY, k=5)
    assert release.promise == "measured" and release.prepared.altered == ("age",)


def test_a_list_of_categories_does_not_leave_with_its_column(tmp_path: Path) -> None:
    frame = people(120).with_columns(age=pl.col("age").cast(pl.String))
    withheld = pl.DataFrame({"age": [""], "sex": ["F"], "cost": [1], "ill": ["leprosy"]}).cast(frame.schema)
    listed = pl.concat([frame, withheld]).with_columns(
        pl.col("ill").cast(pl.Enum(["flu", "gout", "hiv", "leprosy"]))
    )
    schema = Schema({**SCHEMA.columns, "age": Column("age", "quasi", "numeric", missing="suppress")})
    done = publish(
        listed, schema, Mondrian(), out=tmp_path / "out", format="parquet", suppression=0.05, key=KEY, k=5
    )
    assert b"leprosy" not in (done.public / "table.parquet").read_bytes()
    assert pl.read_parquet(done.public / "table.parquet").schema["ill"] == pl.String


def test_two_like_operations_share_no_noise() -> None:
    frame = people(500).with_columns(pl.col("cost").alias("price"))
    schema = Schema({**SCHEMA.columns, "price": Column("price", "other", "numeric")})
    both = [Perturb("cost", scale=50.0), Perturb("price", scale=50.0)]
    made = anonymize(frame, schema, Mondrian(), operations=both, key=KEY, k=5).aligned
    assert int((made["cost"].cast(pl.Int64) == made["price"].cast(pl.Int64)).sum()) < 40


def test_taxonomies_have_keyed_fingerprints_and_the_loss_is_coarse(tmp_path: Path) -> None:
    (tmp_path / "levels.csv").write_text("F;all\nM;all\n")
    (tmp_path / "schema.toml").write_text(
        '[columns.age]\nrole = "quasi"\nkind = "numeric"\n[columns.sex]\nrole = "quasi"\ntaxonomy = "levels.csv"\n'
        '[columns.cost]\nrole = "other"\n[columns.ill]\nrole = "sensitive"\n'
    )
    documents = [
        json.loads(
            (
                publish(
                    people(), tmp_path / "schema.toml", Mondrian(), out=tmp_path / name, key=key, k=5
                ).public
                / "manifest.json"
            ).read_text()
        )
        for name, key in (("a", KEY), ("b", OTHER))
    ]
    digests = [document["schema"]["columns"]["sex"]["taxonomy"]["keyed_sha256"] for document in documents]
    assert digests[0] != digests[1]
    assert all(value == round(value, 3) for value in documents[0]["metrics"]["ncp"]["by_column"].values())


def test_what_speaks_of_withheld_cells_is_told_to_the_owner_alone(tmp_path: Path) -> None:
    frame = people(120).with_columns(
        who=pl.Series([f"p{n // 2}" if n % 2 else f"P{n // 2} " for n in range(120)])
    )
    schema = Schema({**SCHEMA.columns, "who": Column("who", "identifier", "text", person=True)})
    done = publish(frame, schema, Mondrian(), out=tmp_path / "out", key=KEY, k=5)
    assert any("who" in text for text in done.release.warnings)
    assert json.loads((done.public / "manifest.json").read_text())["warnings"] == []
