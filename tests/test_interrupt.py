"""Ctrl-C while a call into C goes on that Python waits for."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

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
    assert process.wait(10) == 130
    assert process.stderr.read() == "ended at once; temporary files may be left behind\n"


@pytest.mark.parametrize("work", ["time.sleep(60)", BUSY.format(rounds=100_000)])
def test_an_interrupt_that_comes_through_is_not_spoken_of(work: str) -> None:
    process = started(f"while True: {work}")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10) == ("", "came through\n")
    assert process.returncode == 1
