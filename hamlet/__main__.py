"""``python -m hamlet`` is the command line."""

from hamlet.cli import main

raise SystemExit(main())
