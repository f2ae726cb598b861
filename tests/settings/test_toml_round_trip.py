"""What `to_toml` writes, `read_toml` makes the same settings of."""

from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from velado.settings import LARGEST, Setting, read_toml, settings, to_toml


@settings
class Leaf:
    """A part with every plain kind."""

    name: ClassVar[str] = "leaf"
    whole: int = 0
    number: Annotated[float, Setting(ge=-1e300)] = 0.5
    text: str = ""
    truth: bool = True
    word: Literal["a", "b"] = "a"
    perhaps: int | None = None
    exact: Annotated[Fraction, Setting(key="lambda")] = Fraction(1, 2)
    many: tuple[str, ...] = ("x",)
    pair: tuple[float, float] = (0.0, 1.0)


@settings(kw_only=True)
class Tree:
    """Tables in tables, lists of tables, tables by name, parts."""

    title: str
    section: Leaf = Leaf()
    listed: tuple[Leaf, ...] = ()
    by_name: dict[str, Leaf] | None = None
    part: Annotated[Leaf, Setting(parts=lambda: (Leaf,))] = Leaf()
    sets: Annotated[tuple[tuple[Leaf, ...], ...], Setting(parts=lambda: (Leaf,))] = ((),)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.floats(-1e300, 1e300)
leaves = st.builds(
    Leaf,
    whole=st.integers(-LARGEST, LARGEST),
    number=numbers,
    text=texts,
    truth=st.booleans(),
    word=st.sampled_from(["a", "b"]),
    perhaps=st.none() | st.integers(0, 9),
    exact=st.fractions(),
    many=st.lists(texts, max_size=3).map(tuple),
    pair=st.tuples(numbers, numbers),
)
trees = st.builds(
    Tree,
    title=texts,
    section=leaves,
    listed=st.lists(leaves, max_size=2).map(tuple),
    by_name=st.none() | st.dictionaries(texts, leaves, max_size=2),
    part=leaves,
    sets=st.lists(st.lists(leaves, max_size=2).map(tuple), max_size=2).map(tuple),
)


@example_settings(max_examples=60)
@given(trees, st.booleans())
def test_written_settings_are_read_as_they_were(tree: Tree, defaults: bool) -> None:
    text = to_toml(tree, defaults=defaults)
    again = read_toml(text, Tree)
    assert again == tree
    assert to_toml(again, defaults=defaults) == text
