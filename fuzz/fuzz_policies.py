"""Fuzzes policies and signatures: ``python fuzz/fuzz_policies.py -max_total_time=60``.

Whatever the texts are, they are read, or refused with messages whose places lie in them; a formula that is read
survives printing, and one that can be monitored gives the same rows in one batch and in several.
"""

from __future__ import annotations

import driver

with driver.atheris.instrument_imports(include=["hamlet.policies"]):
    from tests.policies.fuzzed_policies import check, seeds


def main() -> None:
    """Fuzz until a limit or the first finding."""
    driver.run("policies", check, seeds())


if __name__ == "__main__":
    main()
