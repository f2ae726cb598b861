"""What opens a server is found in its address however it is written, so that no address with it is kept."""

import pytest

from velado.engines.places import ServerAddress
from velado.query.engines._postgres_engine import address_mark

# PostgreSQL lets in with the first seven as they stand: to Python's rules for addresses # and ? would end the password.
WITH_SECRET = (
    "postgresql://ana:geheim@db/study",
    "postgresql://ana:geh#eim@db/study",
    "postgresql://ana:geh?eim@db/study",
    "postgresql://ana:geh%2Feim%40@db/study?sslmode=require",
    "postgresql:///study?host=db&user=ana&password=geheim",
    "postgresql:///study?host=db&user=ana&pass%77ord=geheim",
    "postgresql:///study?application_name=a#b&sslpassword=geheim",
    "postgresql://ana:ge/heim@db/study",
    "postgresql://ana:ge/he?im@db/study",
    "postgresql://ana:geheim",
    "postgresql://ana:g@heim@db/study",
)
WITHOUT = (
    "postgresql://",
    "postgresql://ana@db/study",
    "postgresql://postgres:@/postgres?host=/srv/pg/d",
    "postgresql://db:5432/study?service=night&user=ana%40clinic",
    "postgresql://[::1]:5433/study",
    "postgresql://one:5432,two:5433/study?target_session_attrs=any",
)


@pytest.mark.parametrize("address", WITH_SECRET)
def test_a_password_is_found_wherever_it_stands(address: str) -> None:
    assert ServerAddress.of(address).may_hold_secret


@pytest.mark.parametrize("address", WITHOUT)
def test_an_address_without_one_may_be_kept(address: str) -> None:
    assert not ServerAddress.of(address).may_hold_secret


@pytest.mark.parametrize("address", WITH_SECRET[:7])
def test_the_mark_of_a_table_never_holds_a_password(address: str) -> None:
    mark = address_mark(address, "stays")
    assert mark.startswith("relation:") and "eim" not in mark and "ana:" not in mark
    assert address_mark(address.replace("eim", "other"), "stays") == mark  # a new password is no new table


def test_marks_stay_what_they_were() -> None:
    assert address_mark("postgresql://ana@DB/clinic", "stays") == "relation:db:5432/clinic#stays?"
    assert (
        address_mark("postgresql://[::1]:6000/c?sslmode=require", "s")
        == "relation:::1:6000/c#s?sslmode=require"
    )
    assert address_mark("postgresql://[::1]/c", "s") == "relation:::1:5432/c#s?"
    assert address_mark("postgresql://p:@/p?host=/srv/d", "s") == "relation::5432/p#s?host=/srv/d"
