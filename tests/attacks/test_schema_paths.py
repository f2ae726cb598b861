"""A schema or a recipe from somebody else reads no file outside its own folder, and embeds none it does not use."""

from __future__ import annotations

import os

import pytest

from velado.data.io import attach_taxonomies, read_schema
from velado.data.schema import Schema
from velado.errors import InputError, SchemaError, TaxonomyError
from velado.release.methods import Mondrian
from velado.study.run import apply_recipe, publish, read_recipe

SECRET = "ZQSECRET;ZQ;*\nrio;ZQ;*\n"
TABLE = "name,city,age,illness\n" + "".join(f"p{n},rio,{20 + n},flu\n" for n in range(20))


@pytest.fixture
def home(tmp_path):
    """A folder with a schema, beside a secret that is not the schema's to read."""
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "secret.toml").write_text('ZQ = ["rio", "ZQSECRET"]\n')
    folder = tmp_path / "study"
    (folder / "trees").mkdir(parents=True)
    (folder / "trees" / "city.csv").write_text("rio;RJ;*\n")
    (folder / "table.csv").write_text(TABLE)
    return folder


def schema_text(taxonomy, role="quasi", more=""):
    return f"[columns.name]\nrole='identifier'\n[columns.city]\nrole='{role}'\n{more}taxonomy={taxonomy}\n"


def ways_out(folder):
    outside = folder.parent / "secret"
    return [
        "../secret",
        "../secret.toml",
        "trees/../../secret",
        "./../secret",
        "..",
        "..\\secret",
        "trees\\..\\..\\secret",
        str(outside),
        f"/{outside}",
        "/etc/passwd",
        "C:\\secret",
        "C:secret",
        "\\\\server\\share\\secret",
        f"file://{outside}",
        "trees/../../study/../secret",
        "",
        " ",
        "trees/city.csv\\u0000.txt",
    ]


@pytest.mark.parametrize("number", range(18))
@pytest.mark.parametrize("role", ["quasi", "identifier"])
def test_no_path_leads_out_of_the_schemas_folder(home, number, role):
    path = ways_out(home)[number].replace("\\", "\\\\").replace("\\\\u0000", "\\u0000")
    for entry in (f'"{path}"', f'{{ builder = "levels", file = "{path}" }}'):
        (home / "schema.toml").write_text(schema_text(entry, role))
        try:
            schema = read_schema(home / "schema.toml")
        except InputError as error:
            assert "ZQ" not in str(error)
        else:
            # `file://...` is no path that leads anywhere; an unused column's is not followed.
            assert role == "identifier" and schema.columns["city"].taxonomy.paths is None


@pytest.mark.skipif(os.name == "nt", reason="only elsewhere may a file have such a name")
@pytest.mark.parametrize(
    "path", ["..\\city", "trees\\..\\city", "\\city", "C:city", "C:\\city", "\\\\host\\all\\city"]
)
def test_what_leads_out_on_windows_is_refused_on_every_system(home, path):
    # Here it is the plain name of a file that lies in the folder; the same schema would read another one on Windows.
    (home / path).write_text("rio;RJ;*\n")
    (home / "schema.toml").write_text(schema_text(f"'{path}'"))
    with pytest.raises(SchemaError, match="outside the folder"):
        read_schema(home / "schema.toml")


@pytest.mark.parametrize("builder", ["levels", "tree"])
def test_a_link_that_leads_out_is_not_followed(home, builder):
    name = "link.toml" if builder == "tree" else "link.csv"
    (home / name).symlink_to(home.parent / ("secret.toml" if builder == "tree" else "secret"))
    (home / "folder").symlink_to(home.parent)
    for path in (name, "folder/secret", "folder/study/../secret", "folder/study/trees/city.csv"):
        (home / "schema.toml").write_text(schema_text(f'"{path}"'))
        if path.endswith("city.csv"):
            # It leads out and in again: what is read lies in the folder, so nothing is given away.
            assert read_schema(home / "schema.toml").columns["city"].taxonomy.paths == (("rio", "RJ", "*"),)
            continue
        with pytest.raises(SchemaError, match="outside the folder"):
            read_schema(home / "schema.toml")


def test_a_link_within_the_folder_and_a_folder_that_is_a_link_are_fine(home):
    (home / "here.csv").symlink_to(home / "trees" / "city.csv")
    (home.parent / "elsewhere").symlink_to(home)
    (home / "schema.toml").write_text(schema_text('"here.csv"'))
    for folder in (home, home.parent / "elsewhere"):
        assert read_schema(folder / "schema.toml").columns["city"].taxonomy.paths == (("rio", "RJ", "*"),)


def test_devices_pipes_and_folders_are_refused_at_once(home):
    os.mkfifo(home / "pipe.csv")  # nobody writes to it: reading it would never end
    for path in ("pipe.csv", "trees", "trees/city.csv/x", "trees/" + "x" * 5000):
        (home / "schema.toml").write_text(schema_text(f'"{path}"'))
        with pytest.raises((SchemaError, TaxonomyError)):
            read_schema(home / "schema.toml")


def test_a_file_that_is_no_text_is_refused(home):
    for path in ("3", "true", '["../secret"]'):
        (home / "schema.toml").write_text(schema_text(f"{{ builder = 'levels', file = {path} }}"))
        with pytest.raises(InputError):
            read_schema(home / "schema.toml")


@pytest.mark.parametrize(
    ("role", "more", "read"),
    [
        ("quasi", "", True),
        ("sensitive", "", True),
        ("sensitive", "publish=false\n", True),
        ("other", "", True),
        ("identifier", "", False),
        ("quasi", "publish=false\n", False),
        ("other", "publish=false\n", False),
    ],
)
def test_a_taxonomy_nobody_uses_is_not_read(home, role, more, read):
    (home / "schema.toml").write_text(schema_text('"trees/city.csv"', role, more))
    assert (read_schema(home / "schema.toml").columns["city"].taxonomy.paths is not None) == read
    (home / "trees" / "city.csv").unlink()
    if read:
        with pytest.raises(TaxonomyError, match="not there"):
            read_schema(home / "schema.toml")
    else:
        read_schema(home / "schema.toml")


WHOLE = """
[columns.name]
role = "identifier"
taxonomy = "{name}"
[columns.city]
role = "quasi"
taxonomy = "trees/city.csv"
[columns.age]
role = "quasi"
kind = "numeric"
[columns.illness]
role = "sensitive"
[table]
constant = "allow"
"""


def test_the_recipe_of_a_release_holds_no_file_its_run_did_not_use(home):
    (home / "note.txt").write_text("ZQSECRET\n")
    (home / "schema.toml").write_text(WHOLE.format(name="note.txt"))
    publish(home / "table.csv", home / "schema.toml", Mondrian(), out=home / "out", k=2)
    texts = [path.read_text("utf-8") for path in (home / "out").rglob("*") if path.is_file()]
    assert texts and not any("ZQSECRET" in text for text in texts)


def test_a_recipe_reads_no_file_outside_its_own_folder(home):
    (home / "schema.toml").write_text(WHOLE.format(name="trees/city.csv"))
    publish(home / "table.csv", home / "schema.toml", Mondrian(), out=home / "out", k=2)
    text = next((home / "out").rglob("recipe.toml")).read_text("utf-8")
    head, _, rest = text.partition("[taxonomies.city]")
    bare = head + rest[rest.index("[schema") :]
    evil = home / "evil"
    evil.mkdir()
    (evil / "recipe.toml").write_text(bare.replace('"city.csv"', '"../../secret"'))
    for call in (
        lambda: read_recipe(evil / "recipe.toml"),
        lambda: apply_recipe(evil / "recipe.toml", home / "table.csv", home / "again"),
    ):
        with pytest.raises(SchemaError, match="outside the folder"):
            call()
    assert not (home / "again").exists()


def test_the_check_stands_at_the_one_door(home):
    schema = Schema.from_dict({"columns": {"city": {"role": "quasi", "taxonomy": "../secret"}}})
    with pytest.raises(SchemaError, match="outside the folder"):
        attach_taxonomies(schema, home)
