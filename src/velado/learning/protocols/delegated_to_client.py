"""Delegated regression with the roles of the source's own text: clients and an evaluator alone, and an owner of data opens the total.

In Method 2 of Nascimento 2023 (4.2; after Chen and Zheng 2022) whoever owns the data holds the key, decrypts X'X and X'y and solves.
Of several owners the text does not say which. Here the job names one, its *key holder*:

    holder --key--> evaluator, other clients      every client --sums--> evaluator
    evaluator --total--> holder                   holder --result--> evaluator, other clients

What the text leaves out and the sound form adds: the holder sees re-randomised totals alone; it can take its own sums away from the
total, so that the thresholds must hold for the *others'* rows together, and every client keeps its share of them in its own rows;
its own noise is noise it knows, which `tolerated` (at least 1) does not count on. What no form can mend: the holder needs the
evaluator's help alone to read everybody's sums. Where a party without rows can be had, `delegated` is the better one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from velado.errors import VeladoError
from velado.learning.crypto.fixed_point import Columns
from velado.learning.crypto.paillier import key_to_bytes
from velado.learning.crypto.paillier_keys import keygen
from velado.learning.protocols.delegated_regression import (
    SUMS,
    DelegatedClient,
    DelegatedEvaluator,
    opened,
    packing_for,
)
from velado.learning.protocols.parts import KEY, RESULT, key_facts
from velado.learning.protocols.protocol import Message, RegressionProtocol, Seen, Step
from velado.learning.protocols.reasons import reason_of
from velado.learning.protocols.role import Take, refused
from velado.learning.regression.census import refuse_small_own_cells
from velado.learning.regression.job import Job
from velado.randomness import Tape
from velado.text import say


class _Client(DelegatedClient):
    """A client without the key: it takes key and result from the holder and from nobody else."""

    def __init__(self, job: Job, name: str, tape: Tape, columns: Columns) -> None:
        super().__init__(job, name, tape, columns)
        if job.noise is None:
            refuse_small_own_cells(columns, job, taken_away=1)

    def takes(self) -> Mapping[str, Take]:
        """The key, then the result; a total only where it holds the key."""
        return {**super().takes(), "total": self._take_total}

    def _take_key(self, message: Message) -> Sequence[Message]:
        refuse_other(message, self.job)
        return super()._take_key(message)

    def _take_total(self, message: Message) -> Sequence[Message]:
        raise refused(say("is for the client that holds the key"))

    def _take_result(self, message: Message) -> Sequence[Message]:
        refuse_other(message, self.job)
        return super()._take_result(message)


class _Holder(_Client):
    """The client that makes the key: it sends its own sums as the others do, opens the total alone, and tells the coefficients."""

    def __init__(self, job: Job, name: str, tape: Tape, columns: Columns) -> None:
        super().__init__(job, name, tape, columns)
        self._private = keygen(job.key_bits, tape.fork("key"), job.protocol.least_key_bits)
        packing_for(job, self._private.public)  # a sum that cannot fit is refused before anyone sends

    def start(self) -> Sequence[Message]:
        """The public key to everyone, and its own sums to the evaluator."""
        data = key_to_bytes(self._private.public)
        out = [self._message(name, "key", key=data) for name in self._others()]
        try:
            return [*out, *self._encrypted(self._private.public)]
        except VeladoError as error:
            return [*out, *self.abort(reason_of(error))]

    def _take_total(self, message: Message) -> Sequence[Message]:
        told = self._hold(opened(self.job, self._private, message))
        return [self._message(name, "result", result=told) for name in self._others()]


class _Evaluator(DelegatedEvaluator):
    """Adds what it cannot read, under the key of the one client that is to have it."""

    def _key_holder(self) -> str:
        assert self.job.key_holder is not None  # a job of this protocol names one
        return self.job.key_holder

    def _take_key(self, message: Message) -> Sequence[Message]:
        refuse_other(message, self.job)
        return super()._take_key(message)

    def _take_result(self, message: Message) -> Sequence[Message]:
        refuse_other(message, self.job)
        return super()._take_result(message)


def refuse_other(message: Message, job: Job) -> None:
    """Nothing, if *message* comes from the client that holds the key; ProtocolError else.

    >>> from velado.learning.regression.simulate import small_job
    >>> job = small_job(DELEGATED_TO_CLIENT)
    >>> refuse_other(Message(job.digest(), "c0", "c1", 0, "key", {"key": b""}), job)
    >>> refuse_other(Message(job.digest(), "c2", "c1", 0, "key", {"key": b""}), job)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ProtocolError: A message comes from a client that does not hold the key...
    """
    if message.sender != job.key_holder:
        raise refused(say("comes from a client that does not hold the key"))


def _client(job: Job, name: str, tape: Tape, columns: Columns) -> _Client:
    return (_Holder if name == job.key_holder else _Client)(job, name, tape, columns)


_STEPS = (
    Step("start", "client", "key", "evaluator", "keyed", KEY),
    Step("start", "client", "key", "client", "keyed", KEY),
    # The holder has told its key before it sends its sums; the others tell the evaluator nothing else.
    Step("keyed", "client", "sums", "evaluator", "summed", SUMS),
    Step("start", "client", "sums", "evaluator", "summed", SUMS),
    Step("summed", "evaluator", "total", "client", "asked", SUMS),
    Step("asked", "client", "result", "evaluator", "end", RESULT),
    Step("keyed", "client", "result", "client", "end", RESULT),
)

_FACTS = key_facts(
    client=Seen(
        saw=say(
            "The public key, and at the end {told}; the client that holds the key also the pooled second moments of all rows "
            "in the clear: X'X, X'y, the number of rows and, where asked for, y'y."
        ),
        infers=say(
            "The client that holds the key: every mean, variance and correlation of the pooled rows and, by taking its own away, of "
            "all other clients' rows together; no single one's. The others: nothing beyond what these figures say of the pooled rows."
        ),
    ),
    evaluator=Seen(
        saw=say("Every client's encrypted sums, their sizes and times, and at the end {told}."),
        infers=say("Who took part; of the rows, what a client without the key can infer."),
    ),
    coalitions=(
        say("The evaluator and the client that holds the key together decrypt every client's own sums."),
        say("The client that holds the key and all other clients but one know that one's sums."),
    ),
    hides=say(
        "each client's rows and sums, from everyone; the pooled sums, from all but the client that holds the key"
    ),
)

DELEGATED_TO_CLIENT = RegressionProtocol(
    name="delegated-to-client",
    steps=_STEPS,
    client=_client,
    evaluator=_Evaluator,
    pooled="client",
    stored_key=False,
    client_holds_key=True,
    facts=_FACTS,
)
"""The roles of the source's Method 2: no third party, and one client learns the pooled sums."""
