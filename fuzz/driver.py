"""What the fuzzers share: libFuzzer's arguments, seeds, and a corpus that outlives the run.

Coverage comes from Atheris, which instruments the project's Python modules as they are imported; Cython and Arrow are
not instrumented, but a crash in them ends the run as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

try:
    import atheris
except ImportError:
    sys.exit("the fuzzers need Atheris (Linux): pip install 'hamlet-cep[fuzz]'")

DEFAULTS = {"timeout": "20", "rss_limit_mb": "4096", "max_len": "2000"}


def run(name: str, check: Callable[[bytes], None], seeds: Iterable[bytes]) -> None:
    """Fuzz until libFuzzer's limits or the first finding.

    Parameters
    ----------
    name : str
        The corpus is ``fuzz/corpus/NAME`` (git-ignored); a finding is written to ``fuzz/findings/NAME-...``.
    check : callable
        Takes any bytes; what it raises is a finding.
    seeds : iterable of bytes
        Where to start; written to the corpus.

    Notes
    -----
    Takes the arguments of libFuzzer, such as ``-max_total_time=60``, ``-runs=1000`` or the path of one finding.
    """
    corpus, findings = ROOT / "fuzz" / "corpus" / name, ROOT / "fuzz" / "findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number:03}").write_bytes(seed)
    given = sys.argv[1:]
    options = [f"-{option}={value}" for option, value in DEFAULTS.items()]
    files = [] if any(not argument.startswith("-") for argument in given) else [str(corpus)]
    arguments = [sys.argv[0], *options, f"-artifact_prefix={findings}/{name}-", *given, *files]
    atheris.Setup(arguments, check)
    atheris.Fuzz()
