"""Whether there is a Java that Spark can run on; asked before Spark is started, whose own messages are long."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from hamlet.errors import UnsupportedError

OLDEST = 17
_HELP = (
    f"install Java {OLDEST} or newer (for example: apt install openjdk-{OLDEST}-jre-headless) and put it on the PATH, "
    "or set JAVA_HOME"
)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def check_java() -> Path:
    """The java program that Spark will start: that of JAVA_HOME, else the one on the PATH.

    Raises
    ------
    UnsupportedError
        If there is none, it does not run, or it is older than Java 17.
    """
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None or not Path(found).exists():
        where = f"JAVA_HOME is {home}, where there is no bin/java" if home else "there is no java on the PATH"
        raise UnsupportedError(f"Spark needs Java, and {where}; {_HELP}")
    try:
        run = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(f"Spark needs Java, and {found} does not run: {error}; {_HELP}") from error
    version = _VERSION.search(run.stderr + run.stdout)
    if version is None:
        raise UnsupportedError(f"Spark needs Java, and {found} does not tell its version; {_HELP}")
    if int(version[1]) < OLDEST:
        raise UnsupportedError(f"Spark needs Java {OLDEST} or newer, and {found} is Java {version[1]}; {_HELP}")
    return Path(found)
