"""Fuzzes logs in MonPoly's format: ``python fuzz/fuzz_logs.py -max_total_time=60``.

Whatever the bytes are, they are read, or refused with a message whose place lies in them, however they are cut.
"""

from __future__ import annotations

import driver

with driver.atheris.instrument_imports(include=["hamlet.policies"]):
    from tests.policies.fuzzed_policies import check_log, log_seeds


def main() -> None:
    """Fuzz until a limit or the first finding."""
    driver.run("logs", check_log, log_seeds())


if __name__ == "__main__":
    main()
