"""Memory that ends anywhere: every call ends with an error, and what goes on afterwards is right."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import FULL

HERE = Path(__file__).parent


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="needs LD_PRELOAD and a compiler")
@pytest.mark.parametrize(("stride", "more"), [(31 if FULL else 93, []), (97 if FULL else 197, ["--lasting"])])
def test_an_allocation_that_fails_is_an_error_and_no_crash(tmp_path: Path, stride: int, more: list[str]) -> None:
    library = tmp_path / "failing.so"
    source = HERE / "failing_allocations.c"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"], check=True)
    command = [
        sys.executable,
        "-m",
        "tests.kernel.failing_allocations",
        "--library",
        str(library),
        "--stride",
        str(stride),
    ]
    environment = os.environ | {"LD_PRELOAD": str(library)}
    done = subprocess.run(
        [*command, *more], cwd=HERE.parents[1], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("allocations") == 19
