"""The limits every job keeps to, whoever makes it: key, precision, columns, clients, rows, noise and parties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from velado.errors import ParameterError

if TYPE_CHECKING:
    from velado.encrypted.job import Job

LEAST_CLIENTS = 3
LEAST_ROWS = 10
LEAST_KEY_BITS = 2048
PAPER_KEY_BITS = 1024


def check(job: Job) -> None:
    """Nothing, if the job can be run and keeps to every limit; else the error that names what is wrong."""
    paper = job.protocol == "paper-masked"
    least = PAPER_KEY_BITS if paper else LEAST_KEY_BITS
    if not least <= job.key_bits <= 8192 or job.key_bits % 8:
        raise ParameterError(
            f"A key of {job.key_bits} bits is not accepted.",
            f"Under {least} bits the encryption can be broken, and above 8192 a run takes hours.",
            "Use 3072, the default.",
        )
    if not 0 <= job.bits <= 128:
        raise ParameterError(
            f"{job.bits} fractional bits are not accepted.",
            "They say how finely numbers are encoded: 0 to 128.",
            "Use 20, the default.",
        )
    if not job.features:
        raise ParameterError(
            "The job has no features.",
            "There would be nothing to explain the target by.",
            "Name at least one feature.",
        )
    if job.ridge < 0:
        raise ParameterError(
            "lambda is negative.",
            "It is a penalty: 0 is least squares, and more makes coefficients smaller.",
            "Use 0 or more.",
        )
    if not 0 < job.minutes <= 10_000:
        raise ParameterError(
            "minutes is not above 0 and at most 10000.",
            "A job without a time limit would wait for ever for a party that never comes.",
            "Use for example 30.",
        )
    names = [column.name for column in (*job.features, job.target)]
    if len(set(names)) != len(names):
        raise ParameterError(
            "A column stands twice among the features and the target.",
            "The fit would be singular.",
            "Name each column once.",
        )
    for column in (*job.features, job.target):
        if not column.low < column.high:
            raise ParameterError(
                f"The bounds of column '{column.name}' do not rise.",
                "They are the public domain the encoding is made for.",
                "Write for example bounds = [0, 120].",
            )
    _check_limits(job)
    _check_moments(job)
    _check_epsilon(job)
    _check_parties(job)


def _check_limits(job: Job) -> None:
    if job.minimum_clients < (1 if job.protocol == "paper-masked" else LEAST_CLIENTS):
        raise ParameterError(
            f"A job needs at least {LEAST_CLIENTS} clients.",
            "With two, each could subtract its own rows from the sum and see the other's.",
            f"Set minimum_clients to {LEAST_CLIENTS} or more.",
        )
    if job.minimum_rows < 1:
        raise ParameterError(
            "minimum_rows is below 1: clients have at least one row.",
            "The sums of few rows tell much about each of them.",
            f"Use {LEAST_ROWS}, the default.",
        )
    if job.most_rows < job.minimum_clients * job.minimum_rows:
        raise ParameterError(
            "most_rows is less than minimum_clients times minimum_rows.",
            "It bounds the rows of all clients together, so no run could keep to both.",
            f"Set most_rows to {job.minimum_clients * job.minimum_rows} or more.",
        )


def _check_moments(job: Job) -> None:
    if not job.moments:
        return
    if job.protocol not in ("delegated", "secure-sum"):
        raise ParameterError(
            f"The protocol {job.protocol} gives no standard errors.",
            "They follow from the pooled sums, and this protocol does not give them out.",
            "Leave moments out, or use delegated or secure-sum.",
        )
    if job.ridge != 0:
        raise ParameterError(
            "Standard errors and lambda above 0 do not go together.",
            "The textbook's standard errors are those of least squares; a penalised fit has a bias they do not know of.",
            "Leave one of them out.",
        )


def _check_epsilon(job: Job) -> None:
    if job.epsilon is None:
        return
    if job.protocol not in ("delegated", "secure-sum"):
        raise ParameterError(
            f"The protocol {job.protocol} cannot add noise.",
            "Noise is added to the pooled sums, and this protocol does not give them out.",
            "Leave epsilon out, or use delegated or secure-sum.",
        )
    if not 0 < job.epsilon <= 1000:
        raise ParameterError(
            "epsilon is above 0 and at most 1000.",
            "It says how much one row may change the odds of any result.",
            "Use for example 1.",
        )
    if job.moments:
        raise ParameterError(
            "Standard errors and epsilon do not go together.",
            "The textbook's standard errors do not know of the noise, and would be too small.",
            "Leave one of them out.",
        )


def _check_parties(job: Job) -> None:
    names = [party.name for party in job.parties]
    if len(set(names)) != len(names):
        raise ParameterError(
            "Two parties have the same name.", "Messages are told apart by it.", "Give each its own name."
        )
    needed = 0 if job.protocol == "secure-sum" else 1
    if len(job.of("evaluator")) != 1 or len(job.of("provider")) != needed:
        raise ParameterError(
            f"The protocol {job.protocol} needs one evaluator and {needed} provider(s).",
            "Who holds the key and who holds the encrypted sums must be different parties.",
            "Correct the [[parties]] of the job.",
        )
    if len(job.of("client")) < job.minimum_clients:
        raise ParameterError(
            f"The job names fewer than {job.minimum_clients} clients.",
            "So few could work out each other's rows.",
            "Add clients.",
        )
