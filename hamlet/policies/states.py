"""The state of a run of policies in a file: ``--save`` writes it at the end of an input that goes on in another one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hamlet.checkpoint import frame
from hamlet.checkpoint.columns import BlobWriter
from hamlet.errors import DataError, OutputError, RestoreError
from hamlet.output.place import write_whole
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.plan.evaluation import Evaluation
from hamlet.policies.saving import described_evaluation, load_evaluation


def save_state(path: str, policies: Sequence[Policy], evaluation: Evaluation, time: str) -> None:
    """Write what an evaluation keeps; the file is there as a whole or not at all.

    Parameters
    ----------
    path : str
    policies : sequence of Policy
    evaluation : Evaluation
    time : str
        The type of the stream's time.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    blobs = BlobWriter()
    data = frame.write(
        _work(policies, evaluation, time), {"evaluation": described_evaluation(evaluation, blobs)}, blobs
    )
    try:
        write_whole(path, data)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def load_state(path: str, policies: Sequence[Policy], evaluation: Evaluation, time: str) -> None:
    """Let an evaluation go on from a file of `save_state`.

    Raises
    ------
    DataError
        If the file cannot be read.
    RestoreError
        If it is damaged, or of other policies, another time or another version.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        description, blobs = frame.read(_work(policies, evaluation, time), data, ("evaluation",))
        with frame.blamed():
            load_evaluation(evaluation, description["evaluation"], blobs)
            blobs.end()
    except RestoreError as error:
        raise RestoreError(f"{path}: {error}") from None


def _work(policies: Sequence[Policy], evaluation: Evaluation, time: str) -> frame.Work:
    told = "\n".join(f"{each.name}: {each}" for each in policies)
    asked = "violations or valuations" if not evaluation.negate else "the negation"
    return frame.Work("policies", f"{told}\n{policies[0].signature}\n{asked}\ntime: {time}, {evaluation.per_second}")
