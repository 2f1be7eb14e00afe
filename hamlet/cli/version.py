"""``hamlet version``: of this package, and of all that it stands on."""

from __future__ import annotations

import json
import platform
from importlib import metadata

import click

from hamlet.version import __version__

_PACKAGES = ("numpy", "pyarrow", "sympy", "click", "rich", "pyspark", "duckdb", "polars")


def versions() -> dict[str, str | None]:
    """Versions of the package, the interpreter, the machine's system and the packages in use; None where absent."""
    found: dict[str, str | None] = {
        "hamlet": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.platform(),
        "machine": platform.machine(),
    }
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


@click.command(
    "version",
    epilog="""\b
    Examples:
      hamlet version
      hamlet version --json          (belongs into every bug report)
    """,
)
@click.option("--json", "as_json", is_flag=True, help="Python, system and packages too, as one JSON object.")
def command(as_json: bool) -> None:
    """Print the version."""
    click.echo(json.dumps(versions()) if as_json else f"hamlet {__version__}")
