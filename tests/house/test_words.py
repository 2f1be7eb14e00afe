"""Words that are gone stay gone; files that comments and documents speak of are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = (".py", ".pyi", ".pyx", ".pxd", ".h")

# Names that were replaced by the field's terms: the word, and what is said in its place.
DEAD = {
    "Disorder": "ReorderBuffer",
    "Henceforth": "Always",
    "LiveLanes": "ActiveVector",
    "LivePlace": "ActivePlace",
    "_can_direct": "goes_directly",
    "near_codes": "direct_address",
    "operators.builtin": "operators.dispatch",
    "policy_stream": "policies, policy_work",
    "specification_stream": "specifications, specification_work",
    "continuous kin": "continuous jobs",
    "build_nodes": "code_generation",
    "standing_times": "incremental_since",
    "gathering": "batching",
    "placing": "planned operands",
    "Stretch": "KeyRun",
    "stretch_pass": "key_run_pass",
    "Sheet": "RowColumns",
    "sheet": "row_columns",
    "Seat": "KeySlot",
    "Kin": "MemberClass",
    "kin_of": "member_class_of",
    "Gift": "Contribution",
    "Standing": "Membership",
    "Desk": "SortScratch",
    "desk": "sorting",
    "patience": "backoff",
    "impatience": "next_backoff",
    "PATIENCE": "GRACE",
    "hearts": "loops",
    "strands": "beginnings",
    "find_hosts": "find_merged",
    "Serving": "PolicyRunner",
    "VerdictServing": "VerdictRunner",
    "_serving": "_runner",
    "nobody's": "of the default",
    "self.nobody": "self.defaults",
    "_disorder": "_buffer",
    "explain_text": "hamlet.explanation.text",
    "explain_json": "hamlet.explanation.document",
    "explain_dot": "hamlet.explanation.dot",
    "some who hold nearby": "some of those nearby",
    "the options are none": "say what is wrong with them",
    "the clock is none": "say what is wrong with it",
}

# Names of types that are plain words elsewhere.
TYPES = {"Whole": "CompleteWindows, StatementOptions", "Chosen": "ActiveQueries, Selection"}

_FILE = re.compile(r"(?<![\w/.*<-])(\w[\w./-]*\.(?:py|pyx|pxd|md))\b")
_SAID = re.compile(r"#.*|``[^`]+``|`[^`]+`|\"\"\".*")


def texts(*endings: str) -> Iterator[tuple[Path, list[str]]]:
    for folder in ("hamlet", "optimizer"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and "vendor" not in path.parts:
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8").splitlines()


def known() -> set[str]:
    """Names of files, and what paths may end in."""
    folders = ("hamlet", "optimizer", "tests", "bench", "datasets", "fuzz", "docs", "examples", "tools")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (*CODE, ".md")]
    paths += [*ROOT.glob("*.md"), *ROOT.glob("*.py")]
    parts = [path.relative_to(ROOT).parts for path in paths]
    return {"/".join(each[start:]) for each in parts for start in range(len(each))}


def test_dead_words_stay_dead() -> None:
    word = {each: re.compile(rf"\b{re.escape(each)}\b") for each in DEAD}
    word |= {each: re.compile(rf"\b{each}\b(?=[(*\],:)]| \w+ =)") for each in TYPES}
    found = [
        f"{path}:{number}: {each}; say {(DEAD | TYPES)[each]}"
        for path, lines in texts(*CODE, ".md")
        for number, line in enumerate(lines, 1)
        for each, expression in word.items()
        if each in line and expression.search(line)
    ]
    assert not found, "\n".join(found)


def test_files_that_are_spoken_of_are_there() -> None:
    there, wrong, seen = known(), [], 0
    for path, lines in texts(*CODE, ".md"):
        for number, line in enumerate(lines, 1):
            said = [line] if path.suffix == ".md" else _SAID.findall(line)
            for name in (match[1] for each in said for match in _FILE.finditer(each)):
                seen += 1
                if name not in there and not name.startswith("..") and "://" not in line:
                    wrong.append(f"{path}:{number}: there is no {name}")
    assert seen > 80
    assert not wrong, "\n".join(wrong)


def test_documents_that_are_cited_are_there() -> None:
    cited = re.compile(r"\b(docs/[\w/-]+\.md|[A-Z]{3,}\.md)\b")
    wrong = [
        f"{path}:{number}: {match[1]}"
        for path, lines in texts(*CODE, ".md")
        for number, line in enumerate(lines, 1)
        for match in cited.finditer(line)
        if not (ROOT / match[1]).exists() and not (ROOT / path.parent / match[1]).exists()
    ]
    assert not wrong, "\n".join(wrong)
