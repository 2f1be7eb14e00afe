"""Ctrl-C before the command line is there to hear it: while Python still imports what it consists of.

Imports are no place for an exception: it may come out as another one, or as a traceback that nobody can make sense of.
Nothing is under way yet that would have to be tidied up, so the process ends. This module is the first that the package
imports, and imports next to nothing.
"""

from __future__ import annotations

import os
import signal
import sys

EXIT_CODE = 1
_THREADS = "OPENBLAS_NUM_THREADS"  # of numpy's linear algebra, which a command has no use for: they take time to start
_PROGRAMS = ("hamlet", "hamlet.exe", "hamlet-script.py")


def is_command(program: str, asked: list[str]) -> bool:
    """Whether a process that begins to import the package is the program ``hamlet`` and nothing else.

    Parameters
    ----------
    program : str
        ``sys.argv[0]``; that is ``-m`` while the package of ``python -m`` is imported.
    asked : list of str
        ``sys.orig_argv``.

    Examples
    --------
    >>> is_command("/usr/bin/hamlet", ["python", "/usr/bin/hamlet", "run"])
    True
    >>> is_command("-m", ["python", "-m", "hamlet", "run"]), is_command("-m", ["python", "-m", "pytest"])
    (True, False)
    """
    if program == "-m":
        return "-m" in asked and asked[asked.index("-m") + 1 :][:1] == ["hamlet"]
    folder, name = os.path.split(program)
    return name in _PROGRAMS or (name == "__main__.py" and os.path.basename(folder) == "hamlet")


def end(*_: object) -> None:
    """End the process, with one line: the handler of signals."""
    os.write(2, b"interrupted\n")
    os._exit(EXIT_CODE)


def listen() -> None:
    """Let Ctrl-C end a process that is the command; not where it is ignored, or heard otherwise, or of a thread."""
    if sys.argv and is_command(sys.argv[0], sys.orig_argv):
        os.environ.setdefault(_THREADS, "1")
        try:
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, end)
        except ValueError:  # only the main thread may set it
            return
