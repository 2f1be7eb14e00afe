"""Ctrl-C while a call into C goes on that Python waits for, and while the command line is still being imported."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hamlet.cli import main
from hamlet.cli.interrupt import heard_at_once

WAITS = "interrupted; ends when what is under way allows it, or at once with another Ctrl-C\n"
LISTEN = """
import hashlib, sys, time
from hamlet.cli.interrupt import heard_at_once
try:
    with heard_at_once():
        print("ready", flush=True)
        {work}
except KeyboardInterrupt:
    sys.exit("came through")
"""
BUSY = "hashlib.pbkdf2_hmac('sha256', b'password', b'salt', {rounds})"  # looks at no signal until it is done


def started(work: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", LISTEN.format(work=work)], stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    return process


def test_the_second_interrupt_ends_at_once() -> None:
    process = started(BUSY.format(rounds=10**9))  # minutes
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == WAITS
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 1
    assert process.stderr.read() == "ended at once; temporary files may be left behind\n"


@pytest.mark.parametrize("work", ["time.sleep(60)", BUSY.format(rounds=100_000)])
def test_an_interrupt_that_comes_through_is_not_spoken_of(work: str) -> None:
    process = started(f"while True: {work}")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10) == ("", "came through\n")
    assert process.returncode == 1


SCRIPT = "import sys\nfrom hamlet.cli import main\nsys.exit(main())\n"


@pytest.mark.parametrize("moment", ["numpy", "hamlet.errors", "hamlet._core", "hamlet.engine.online", "click"])
@pytest.mark.parametrize("way", ["module", "script"])
def test_an_interrupt_while_modules_are_imported(tmp_path: Path, way: str, moment: str) -> None:
    """Python says which modules it has imported; the signal comes right after one of them."""
    script = tmp_path / "hamlet"  # as pip writes it
    script.write_text(SCRIPT)
    program = ["-m", "hamlet"] if way == "module" else [str(script)]
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", *program, "doctor"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while not (line := process.stderr.readline()).endswith(f" {moment}\n"):
        assert line, f"{moment} is not imported"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert [line for line in err.splitlines() if not line.startswith("import time:")] == ["interrupted"]
    assert (out, process.returncode) == ("", 1)


def test_who_imports_the_package_keeps_its_own_interrupts(tmp_path: Path) -> None:
    """Neither a program of another name nor one that ignores Ctrl-C is told what to do."""
    ask = "import signal, hamlet; print(signal.getsignal(signal.SIGINT) is signal.{})"
    for name, handler, before in (
        ("mine.py", "default_int_handler", ""),
        ("hamlet", "SIG_IGN", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "),
    ):
        script = tmp_path / name
        script.write_text(before + ask.format(handler))
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
        assert done.stdout == "True\n"


def test_a_thread_of_a_program_runs_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Signals are the main thread's, whose handler stays."""
    before, found = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with heard_at_once():
            found.append(signal.getsignal(signal.SIGINT))
        found.append(main(["--version"]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before, 0]
    assert signal.getsignal(signal.SIGINT) is before
    assert "hamlet" in capsys.readouterr().out
