"""``python -m hamlet`` is the command line, and so is ``spark-submit .../hamlet/__main__.py``."""

import sys
from pathlib import Path

if not __package__:
    # Run as a file: Python has put this folder on the path, and its modules must not be found at the top level.
    folder = Path(__file__).resolve().parent
    sys.path[:] = [str(folder.parent), *(path for path in sys.path if Path(path).resolve() != folder)]

from hamlet.cli import main

raise SystemExit(main())
