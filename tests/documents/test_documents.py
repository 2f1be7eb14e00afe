"""What the documents show is what happens: their files, commands and Python lines are run (`runner.py`)."""

from __future__ import annotations

import fnmatch
import functools
import re
import shutil
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from datasets import flights as flights_stream
from datasets.files import write_stream
from hamlet.language.cursor import CLAUSES
from hamlet.language.parse_condition import RESERVED
from hamlet.testing import assert_trends
from tests.documents.runner import ROOT, Reader, blocks, check

PAGES = ["ARCHITECTURE.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="session")
def flights(flights_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The flights of 2013, as the tutorial makes them."""
    path = tmp_path_factory.mktemp("flights") / "flights.parquet"
    write_stream(flights_stream.read(flights_file), path)
    return path


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if any("flights.parquet" in block.text for block in blocks(ROOT / page) if block.run):
        shutil.copy(request.getfixturevalue("flights"), tmp_path)
    Reader(ROOT / page, tmp_path).read()


def test_enough_is_run() -> None:
    """A page whose blocks the reader no longer sees would pass."""
    seen = [block for page in PAGES for block in blocks(ROOT / page) if block.run]
    assert sum(block.language == "console" for block in seen) >= 15
    assert sum(block.language in ("python", "pycon") for block in seen) >= 10


def test_a_wrong_output_is_noticed() -> None:
    check("here", "x", "a\nb\nc\n1.25 s\n", "a\n...\n0.10 s\n")
    with pytest.raises(AssertionError, match="here: x\nprints"):
        check("here", "x", "a\nb\n", "a\n")


def test_mistakes_in_a_document_are_noticed(tmp_path: Path) -> None:
    for text in (
        "```console\n$ echo 1\n2\n```\n",
        "```console\n$ hamlet version --jsno\n```\n",
        "```python\nprint(1)\n```\n\n```output\n2\n```\n",
        "```pycon\n>>> 1\n2\n```\n",
    ):
        document = tmp_path / "page.md"
        document.write_text(text, encoding="utf-8")
        with pytest.raises(AssertionError):
            Reader(document, tmp_path).read()
    document.write_text("<!-- not run: wrong -->\n" + text, encoding="utf-8")
    assert Reader(document, tmp_path).read() == 0


def test_the_table_of_patterns_in_the_language_page() -> None:
    """Each line `pattern | stream | trends` of docs/language.md."""
    page = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| ([A-Z ]+) \| (\d+) \|", page, re.MULTILINE)
    assert len(rows) >= 10
    for pattern, stream, count in rows:
        assert_trends(f"RETURN COUNT(*) PATTERN {pattern} WITHIN 100 s", stream, int(count))


def test_the_grammar_of_the_language_page_knows_every_keyword() -> None:
    page = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    for word in (*CLAUSES, *RESERVED, "SEQ", "NEXT", "PREV", "LOG2", "EVENT", "COUNT", "SUM", "AVG", "MIN", "MAX"):
        assert word in page


# What the other systems of the first table return: matches of "A, then one or more B" under the three semantics.


def listed(stream: str, may_skip: Callable[[str], bool], all_starts: bool) -> list[str]:
    """Sequences A B+ of a stream; `may_skip` says which events may be passed over inside one."""
    events = [f"{kind}{time}" for time, kind in enumerate(stream.split(), 1)]
    found = []
    for size in range(2, len(events) + 1):
        for chosen in combinations(range(len(events)), size):
            kinds = "".join(events[place][0] for place in chosen)
            between = [place for place in range(chosen[0], chosen[-1]) if place not in chosen]
            if re.fullmatch("AB+", kinds) and all(may_skip(events[place][0]) for place in between):
                found.append("".join(events[place] for place in chosen))
    return found if all_starts else found[-1:]  # the greedy one is the longest


def test_the_three_semantics_of_the_language_page() -> None:
    page = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    plain = page.translate(str.maketrans("₁₂₃₄₅", "12345"))
    shown = {
        name: sorted(sequences.split(", "))
        for name, sequences in re.findall(r"^\| ([a-z ]+) \| ([AB0-9, ]+) \| \d+ \|", plain, re.MULTILINE)
    }
    stream = "A B X B B"
    assert shown == {
        "contiguous": sorted(listed(stream, lambda _: False, all_starts=False)),
        "skip till next match": sorted(listed(stream, lambda kind: kind == "X", all_starts=True)),
        "skip till any match": sorted(listed(stream, lambda _: True, all_starts=True)),
    }


# ------------------------------------------------------------------------------------------------- ARCHITECTURE.md

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_names_of_the_paper_are_where_the_table_says() -> None:
    table = ARCHITECTURE[ARCHITECTURE.index("| in the paper | symbol | in the code | file |") :].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert len(rows) >= 9
    for paper, _, code, files in rows:
        text = "".join((ROOT / file).read_text(encoding="utf-8") for file in files.split(", "))
        names = re.findall(r"`([^`]+)`", code) or code.split(", ")
        assert names, paper
        for name in names:
            for part in name.split("."):
                assert re.search(rf"\b{re.escape(part)}\b", text), f"{paper}: {part} is not in {files}"


def test_the_files_that_are_named_are_there() -> None:
    folders = "hamlet|optimizer|datasets|tests|fuzz|bench|tools"
    rooms = [path for folder in ("hamlet", "optimizer") for path in sorted((ROOT / folder).rglob("README.md"))]
    text = "\n".join([ARCHITECTURE, *(path.read_text(encoding="utf-8") for path in rooms)])
    named = re.findall(rf"(?<![\w/*])((?:{folders})/[\w/]+\.(?:pyx|pxd|py|h)\b)", text)
    assert len(named) >= 20
    for path in named:
        assert (ROOT / path).is_file(), path


# ---------------------------------------------------------------------------------------------- what texts refer to

CITED = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+\.md)\b|\b([A-Z]{4,}) §")
FOLDERS = ("hamlet", "optimizer", "datasets", "bench", "tests", "docs", "examples", "fuzz", "tools", "workloads")
READ = (".py", ".pyx", ".pxd", ".pyi", ".h", ".md", ".css", ".js", ".html", ".sase", ".mfotl", ".lola", ".toml", ".yml")
PAPERS = {"COGRA", "GRETA", "HAMLET", "SHARON"}


@functools.cache
def texts() -> dict[Path, str]:
    """Every text that may speak of documents: sources, documents, pages, workloads."""
    found = [path for path in ROOT.iterdir() if path.suffix in READ or path.name == "Makefile"]
    for folder in FOLDERS:
        found += [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in READ]
    return {path: path.read_text(encoding="utf-8", errors="replace") for path in found}


def dangling(text: str) -> list[str]:
    """What a text cites that is neither a document of this repository nor a paper."""
    here = [f"/{path.relative_to(ROOT).as_posix()}" for path in texts() if path.suffix == ".md"]
    return [
        match[0]
        for line in text.splitlines()
        if ".md" in line or "§" in line
        for match in CITED.finditer(line)
        if match[2] not in PAPERS and not (match[1] and any(path.endswith(f"/{match[1]}") for path in here))
    ]


def test_no_text_cites_a_document_that_is_not_here() -> None:
    read = {path: text for path, text in texts().items() if path != Path(__file__).resolve()}
    assert len(read) > 500
    offences = [f"{path.relative_to(ROOT)}: {cited}" for path, text in read.items() for cited in dangling(text)]
    assert offences == []


def test_dangling_citations_are_noticed() -> None:
    text = 'Source: DESIGN §2; docs/grammar.md; HAMLET §4; docs/language.md ("Trends"); [how](tuning.md).'
    assert dangling(text) == ["DESIGN §", "docs/grammar.md"]


DOCUMENT = re.compile(r'(docs/[\w-]+\.md) \(("[^)]*)\)|(docs/[\w-]+\.md), ("[^"]+")')


def test_sections_that_are_cited_are_there() -> None:
    """A source such as `docs/language.md ("Negation")` names a heading of that page."""
    cited = 0
    for path, text in texts().items():
        for match in DOCUMENT.finditer(text) if "docs/" in text else ():
            page = (ROOT / (match[1] or match[3])).read_text(encoding="utf-8")
            for title in re.findall(r'"([^"]+)"', match[2] or match[4]):
                cited += 1
                heading = title.split(":")[0]
                assert re.search(rf"^#+ {re.escape(heading)}$", page, re.MULTILINE), f"{path}: {title}"
    assert cited >= 20


# ------------------------------------------------------------------------------------------------- tests/README.md


def test_the_table_of_tests_names_every_file_and_no_other() -> None:
    table = (ROOT / "tests/README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w*/]+\.py)`", table))
    files = {path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("*.py")}
    assert sorted(files) == sorted({file for name in named for file in fnmatch.filter(files, name)})
    assert all(fnmatch.filter(files, name) for name in named)
