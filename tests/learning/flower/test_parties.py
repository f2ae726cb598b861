"""Between machines: a key that its owner did not sign hides nobody's sums, and what was let out before is remembered."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from velado.errors import InputError, KeyRefused, SchemaError
from velado.learning.flower import Federation
from velado.learning.flower._client import ClientState, TrainingClient, answer
from velado.learning.flower._local_rows import Locally, prepare
from velado.learning.flower._masking import public_key
from velado.learning.flower._parties import OwnParty, marks_of
from velado.learning.flower.agreement import FederatedData, FederationRecipe, agree
from velado.learning.flower.client_app import LoopGrid, make_client_app, number_of
from velado.learning.flower.flower_records import Packet
from velado.learning.flower.server_app import Ended, serve
from velado.learning.net.identity import open_identity
from velado.learning.net.job_register import column_marks, enter, read_register
from velado.learning.protocols.parts import EarlierJob
from velado.learning.regression.job import Party

from .machines import WORDS, make_parties


class Hospitals:
    """Clients with identities, in one process: what machines do, without their network."""

    def __init__(self, people, folder: Path, names: tuple[int, ...] = (1, 2, 3, 4), **settings) -> None:
        self.folder = folder
        if not folder.exists():
            self.entries = make_parties(folder, 4)
        self.entries = [Party(**{key: value for key, value in _entry(folder, one).items()}) for one in names]
        federation = Federation(clients=len(names), **{"rounds": 8, "penalty": 1e-3, **settings})
        recipe = FederationRecipe(
            FederatedData(schema="schema.toml", target="outcome"),
            Locally(),
            federation=federation,
            parties=tuple(self.entries),
        )
        agreement = agree(recipe, people.schema)
        self.terms, table = agreement.terms, people.table
        self.clients = []
        for at, one in enumerate(names, start=1):
            # A hospital has the same rows whatever its number in a run.
            rows = table.with_frame(table.frame[one - 1 :: 4])
            identity = open_identity(folder / f"h{one}", WORDS)
            kept = marks_of(rows, self.terms, identity)
            party = OwnParty(folder / f"h{one}", folder / "words", self.terms, at, **kept)
            prepared = prepare(rows, self.terms, agreement.locally, at)
            self.clients.append(TrainingClient(self.terms.agreed, prepared, party=party))

    def run(self, change=None) -> Ended:
        app = make_client_app(lambda context: self.clients[number_of(context) - 1])

        def changed(message, context):
            out = app(message, context)
            if change is not None:
                change(number_of(context), out)
            return out

        return serve(LoopGrid(changed, len(self.clients)), self.terms.agreed, 0)


def _entry(folder: Path, one: int) -> dict[str, str]:
    from velado.learning.net.identity import read_public

    return vars(read_public(folder / f"h{one}"))


def said(ended: Ended) -> str:
    return " ".join(
        [str(ended.stopped), *(one.gap or "" for one in ended.rounds.records)]
        + [one.gap or "" for one in ended.rounds.roster.client_records()]
    )


def greeted(hospitals: Hospitals) -> tuple[Packet, ClientState]:
    """What the first client is asked in the first round, as an honest coordinator would ask it, and its state."""
    digest, states, hellos = hospitals.terms.digest, [], []
    for client in hospitals.clients:
        hello, state = answer(lambda one=client: one, Packet({"digest": digest}), ClientState(), "greet")
        hellos.append(hello)
        states.append(state)

    def rows(name: str):
        return np.stack([np.frombuffer(bytes.fromhex(one.text(name)), np.uint8) for one in hellos])

    weights = np.zeros((hospitals.terms.agreed.features + 1, 1))
    arrays = {"weights": weights, "members": np.arange(1, len(hellos) + 1)}
    arrays |= {"keys": rows("mask_key"), "signatures": rows("signature")}
    packet, first = Packet({"digest": digest, "round": 1}, arrays), hospitals.clients[0]
    counted, state = answer(
        lambda: first, replace(packet, facts={**packet.facts, "census": 1}), states[0], "train"
    )
    assert "masked" in counted.arrays
    return packet, state


def test_a_run_of_named_hospitals_ends_and_stands_in_each_register(people, tmp_path: Path) -> None:
    hospitals = Hospitals(people, tmp_path / "parties")
    ended = hospitals.run()
    assert ended.stopped is None and ended.rounds.records[0].applied
    for one in hospitals.clients:
        (job,) = read_register(one.party.identity)
        assert job.roster == ("h1", "h2", "h3", "h4") and job.exact and "outcome" in job.columns
    # The same hospitals again, with another setting: nothing is new but the terms.
    assert Hospitals(people, tmp_path / "parties", rounds=9).run().stopped is None


def test_a_coordinator_that_puts_in_a_key_of_its_own_gets_no_sum(people, tmp_path: Path) -> None:
    hospitals = Hospitals(people, tmp_path / "parties")
    packet, state = greeted(hospitals)
    first = hospitals.clients[0]
    honest, _ = answer(lambda: first, packet, state, "train")
    assert "masked" in honest.arrays

    def asked(**arrays) -> Packet:
        out, _ = answer(lambda: first, Packet(packet.facts, {**packet.arrays, **arrays}), state, "train")
        return out

    keys, signatures = packet.arrays["keys"].copy(), packet.arrays["signatures"].copy()
    keys[2] = np.frombuffer(public_key(bytes(32)), np.uint8)
    for out in (
        asked(keys=keys),
        asked(keys=keys, signatures=np.delete(signatures, 2, axis=0)),
        asked(signatures=signatures[[0, 1, 3, 2]]),  # another hospital's signature is not this one's
        asked(signatures=np.zeros((0, 64), np.uint8)),
    ):
        assert "is not signed by it" in out.text("error") and not out.arrays


def test_a_node_that_cannot_sign_as_the_hospital_is_turned_away(people, tmp_path: Path) -> None:
    hospitals = Hospitals(people, tmp_path / "parties", participation=0.7)

    def forge(number: int, out) -> None:
        facts = out.content.config_records["velado.facts"]
        if number == 3 and "signature" in facts:
            facts["signature"] = "00" * 64

    ended = hospitals.run(forge)
    assert "not signed by the hospital" in said(ended)
    assert ended.rounds.records[0].applied and ended.rounds.records[0].asked == 3
    other = replace(hospitals.clients[0].party, folder=hospitals.folder / "h2")
    with pytest.raises(KeyRefused, match="not the one that the agreement names"):
        other.sign(b"")


def test_a_second_run_with_one_hospital_less_is_refused_unless_there_is_noise(people, tmp_path: Path) -> None:
    folder = tmp_path / "parties"
    assert Hospitals(people, folder).run().stopped is None
    fewer = Hospitals(people, folder, names=(1, 2, 3)).run()
    assert fewer.stopped is not None and "had 1 client more or fewer" in said(fewer)
    assert not any(one.applied for one in fewer.rounds.records)
    noisy = Hospitals(people, folder, names=(1, 2, 3), epsilon=20)
    noisy.clients[0].party.let_out([1, 2, 3])
    assert not read_register(noisy.clients[0].party.identity)[-1].exact


def test_a_regression_over_the_same_column_counts_too(people, tmp_path: Path) -> None:
    hospitals = Hospitals(people, tmp_path / "parties")
    party = hospitals.clients[0].party
    ages = {"years": people.table.frame["age"].to_numpy()[::4]}
    marks = column_marks(ages, party.identity)
    assert set(marks.values()) <= set(party.marks.values())
    enter(party.identity, EarlierJob(job="0a", roster=("h1", "h2", "h3"), columns=marks))
    with pytest.raises(InputError, match="had 1 client more or fewer"):
        party.let_out([1, 2, 3, 4])


def test_a_second_run_over_a_column_with_few_rows_changed_is_refused(people, tmp_path: Path) -> None:
    """The attack of two jobs of the same hospitals: the second has a column of the first, but for one patient."""
    assert Hospitals(people, tmp_path / "parties").run().stopped is None
    marker = people.table.frame["marker"].to_list()
    marker[8] = "9.99" if float(marker[8]) < 5 else "0.01"
    changed = people.table.with_frame(people.table.frame.with_columns(pl.Series("marker", marker)))
    again = Hospitals(replace(people, table=changed), tmp_path / "parties", rounds=9).run()
    assert again.stopped is not None and not any(one.applied for one in again.rounds.records)
    assert "'marker' differs from 'marker' of an earlier job in some but fewer than 10" in said(again)
    noisy = Hospitals(replace(people, table=changed), tmp_path / "parties", epsilon=20)
    noisy.clients[0].party.let_out([1, 2, 3, 4])
    kept = read_register(noisy.clients[0].party.identity)
    assert [one.exact for one in kept] == [True, False] and set(kept[0].sketches) == set(kept[0].columns)


def test_parties_that_do_not_fit_the_federation_are_refused(people, tmp_path: Path) -> None:
    entries = [Party(**one) for one in make_parties(tmp_path / "parties", 3)]
    keyless = [*entries[:2], replace(entries[2], signing_key="ab")]
    for parties, why in (
        (entries[:2], "names 2 clients"),
        ([*entries[:2], entries[0]], "the same name or the same key"),
        (keyless, "no signing key"),
    ):
        recipe = FederationRecipe(
            FederatedData(schema="schema.toml", target="outcome"),
            federation=Federation(clients=3),
            parties=tuple(parties),
        )
        with pytest.raises(SchemaError, match=why):
            agree(recipe, people.schema)
