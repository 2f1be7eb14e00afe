"""Continuous jobs that are killed at random moments and begin with another number of slices, by `fuzz.spark_kills`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.effort import FULL

pytest.importorskip("pyspark")
pytest.importorskip("google.protobuf", reason="protobuf is not installed (pip install 'hamlet-cep[spark]')")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("notation", ["query", "policy"] if FULL else ["policy"])  # one runner serves both
def test_each_row_once_after_kills(notation: str, tmp_path: Path) -> None:
    from fuzz.spark_kills import Job, killed

    job = Job(tmp_path, notation, random.Random(notation), files=12 if FULL else 5)
    _, rows = killed(job, 10 if FULL else 1)
    assert rows > 10
