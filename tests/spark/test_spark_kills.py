"""Continuous jobs that are killed at random moments and begin with another number of slices, by `fuzz.spark_kills`."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("google.protobuf", reason="protobuf is not installed (pip install 'hamlet-cep[spark]')")


KILLS = int(os.environ.get("HAMLET_KILLS", "0"))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("notation", ["query", "policy"] if KILLS else ["policy"])  # one runner serves both
def test_each_row_once_after_kills(notation: str, tmp_path: Path) -> None:
    from fuzz.spark_kills import Job, killed

    job = Job(tmp_path, notation, random.Random(notation))
    _, rows = killed(job, KILLS or 1)
    assert rows > 10
