"""The mistakes of docs/errors.md, and how that page is made of them.

Mistakes in a workload are golden files of their own (``tests/language/errors/*.txt``); the page shows those of
`IN_WORKLOADS`. The others are here: files, and a command or a few Python lines. After a change of wording run
``HAMLET_WRITE_ERRORS=1 pytest tests/documents/test_gallery.py`` and read the difference.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.documents.runner import run

ERRORS = Path(__file__).resolve().parents[1] / "language" / "errors"
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "errors.md"
SEPARATOR = "\n----\n"
MOST_LINES = 60  # of a message that is shown in full

# Golden files of tests/language/errors by section, with what is wrong in words.
IN_WORKLOADS = {
    "The text of a query": {
        "pattern_unclosed_seq": "A parenthesis is not closed",
        "statement_misspelled_return": "A keyword is misspelled",
        "statement_select": "SQL instead of a pattern query",
        "clause_from": "A clause that does not exist",
        "within_missing": "There is no window",
        "within_no_unit": "A duration without a unit",
        "within_events": "A window of events",
        "slide_negative": "A duration that is not positive",
        "offset_negative": "An offset below zero",
        "group_by_after_within": "Clauses in another order",
        "token_typographic_quotes": "Quotes of a word processor",
        "token_unclosed_string": "A string that is not closed",
        "token_hash_comment": "A comment of another language",
        "many_typos": "A file full of typos: all of them at once",
    },
    "Patterns": {
        "pattern_missing_comma": "A comma is missing",
        "pattern_variable_after_plus": "The variable stands behind the plus",
        "pattern_variable_of_two_types": "One variable for two types",
        "pattern_bounds_reversed": "Bounds the wrong way round",
        "pattern_arrow": "Arrows of another language",
        "pattern_and_of_three": "AND of more than two patterns",
        "not_alone": "NOT alone",
        "not_only": "Nothing but NOT",
        "not_ambiguous": "A word with two meanings",
    },
    "Conditions": {
        "where_two_variables": "Two variables, and no NEXT or PREV",
        "where_next_alone": "NEXT without the other event",
        "where_unknown_variable": "A variable that is not in the pattern",
        "where_equivalence_under_or": "An equivalence under OR",
        "where_equals_null": "A comparison with NULL",
        "where_like": "LIKE",
        "where_aggregate": "An aggregate in WHERE",
        "where_chained_comparison": "Chained comparisons",
        "where_integer_too_large": "A number beyond 64 bits",
        "where_warning_never_neighbours": "A condition that is never tested (a warning)",
    },
    "What is returned": {
        "return_not_grouped": "An attribute that is not grouped by",
        "return_unknown_aggregate": "An aggregate that does not exist",
        "return_sum_without_variable": "SUM of an attribute without a variable",
        "return_negated_variable": "Returning what is forbidden",
        "return_duplicate_column": "Two columns of one name",
        "name_twice": "Two queries of one name",
    },
    "Names and types": {
        "column_unknown": "A column that the input lacks",
        "column_types": "Types that do not fit the columns",
        "event_unknown_attribute": "An attribute that is not declared",
        "event_sum_of_text": "SUM of text",
        "event_key_of_two_types": "A key of two types",
        "event_warning_type_misspelled": "A type that is not declared (a warning)",
        "within_finer_than_the_clock": "A window finer than the clock",
    },
}

QUERY = "q1: RETURN k, COUNT(*), SUM(B.v) AS total PATTERN SEQ(A, B+) GROUP-BY k WITHIN 1 h;\n"
MILLISECONDS = "time,type,k,v\n1384300800000,A,x,1\n1384300801000,B,x,2\n1384300802000,B,x,3\n"
EVENTS = "time,type,k,v\n1384300800,A,x,1\n1384300801,B,x,2\n1384300802,B,x,3\n"


@dataclass(frozen=True)
class Mistake:
    """A mistake that needs more than a workload.

    Attributes
    ----------
    title : str
    command : str
        A command line, or Python lines (with a line break at the end).
    files : dict of str to str
        Besides ``w.sase`` and ``e.csv``; shown where `shown` says so. Those whose names begin with latin1 are in that
        encoding; a text that begins with a byte order mark is UTF-16.
    shown : tuple of str
        Files that the page shows.
    environment : dict of str to str
        Variables that are set; the command then runs in a process of its own.
    """

    title: str
    command: str
    files: dict[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def said(self, folder: Path) -> str:
        """What is printed, in an empty folder."""
        with contextlib.chdir(folder):
            for name, text in {"w.sase": QUERY, "e.csv": EVENTS, **self.files}.items():
                Path(name).parent.mkdir(exist_ok=True)
                Path(name).write_bytes(text.encode(_encoding(name, text)))
            if self.environment:
                said = self._apart()
            else:
                said = self._python() if self.command.endswith("\n") else run(self.command)
        return said.replace(str(folder.resolve()), "/data")

    def _apart(self) -> str:
        """A command in a process of its own: what another test has started (a JVM, say) would hide the mistake."""
        arguments = [sys.executable, "-m", *shlex.split(self.command)]
        found = subprocess.run(
            arguments,
            env={**os.environ, **self.environment, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        return found.stdout + found.stderr

    def _python(self) -> str:
        names: dict[str, object] = {}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(self.command, names)
            except Exception as error:
                kind = type(error)
                return f"{kind.__module__}.{kind.__qualname__}: {error}\n"
        return out.getvalue()


def _encoding(name: str, text: str) -> str:
    if name.startswith("latin1"):
        return "latin-1"
    return "utf-16-le" if text.startswith("\N{ZERO WIDTH NO-BREAK SPACE}") else "utf-8"


RUN = "hamlet run w.sase --input "
SECTIONS: dict[str, list[Mistake]] = {
    "The input": [
        Mistake("No such file", RUN + "evnts.csv"),
        Mistake("A file of a format that cannot be told", RUN + "events.dat", {"events.dat": EVENTS}),
        Mistake("The time column has another name", RUN + "e.csv --time-column tiem"),
        Mistake("The type column has another name", RUN + "e.csv --type-column event"),
        Mistake("Another column taken for the type", RUN + "e.csv --type-column k --limit 1"),
        Mistake("The wrong time unit: all events in 1970", RUN + "e.csv --time-unit ns --limit 1"),
        Mistake("The wrong time unit: beyond all years", RUN + "ms.csv", {"ms.csv": MILLISECONDS}),
        Mistake("Events of other types only", RUN + "lower.csv", {"lower.csv": EVENTS.lower()}, ("lower.csv",)),
        Mistake(
            "No event passes the predicates",
            "hamlet run high.sase --input e.csv",
            {"high.sase": QUERY.replace("GROUP-BY", "WHERE A.v > 5 AND B.v > 5 GROUP-BY")},
            ("high.sase",),
        ),
        Mistake(
            "No time",
            RUN + "gap.csv",
            {"gap.csv": EVENTS.replace("1384300801,B", ",B")},
            ("gap.csv",),
        ),
        Mistake("Times that are no numbers", RUN + "text.csv", {"text.csv": EVENTS.replace("1384300801", "noon")}),
        Mistake(
            "Times that nanoseconds cannot hold",
            RUN + "real.csv",
            {"real.csv": EVENTS.replace("1384300801", "1384300801.1234567891")},
        ),
        Mistake(
            "Text in a column of numbers",
            RUN + "words.csv",
            {"words.csv": EVENTS.replace(",x,2", ",x,two")},
            ("words.csv",),
        ),
        Mistake("A line with too many fields", RUN + "wide.csv", {"wide.csv": EVENTS + "1384300803,B,x,4,5\n"}),
        Mistake("No header", RUN + "bare.csv", {"bare.csv": EVENTS.partition("\n")[2]}, ("bare.csv",)),
        Mistake("Text in another encoding", RUN + "latin1.csv", {"latin1.csv": EVENTS.replace("A,x", "A,é")}),
        Mistake("Types in another encoding", RUN + "latin1.csv", {"latin1.csv": EVENTS.replace("A,x", "Fähre,x")}),
        Mistake("An empty file", RUN + "empty.csv", {"empty.csv": ""}),
        Mistake("UTF-16 text", RUN + "wide.csv", {"wide.csv": "\N{ZERO WIDTH NO-BREAK SPACE}" + EVENTS}),
        Mistake("A file of another machine", RUN + "s3://bucket/events.csv"),
        Mistake("An Arrow stream where files are read", "hamlet check w.sase --input a.arrow", {"a.arrow": ""}),
        Mistake("A file that is no Parquet", RUN + "not.parquet", {"not.parquet": EVENTS}),
        Mistake("Broken JSON", RUN + "cut.jsonl", {"cut.jsonl": '{"time": 1, "type": "A"}\n{"time": 2, "ty\n'}),
        Mistake("Two columns of one name", RUN + "twice.csv", {"twice.csv": EVENTS.replace("k,v", "v,v")}),
        Mistake(
            "Arithmetic beyond 64 bits",
            "hamlet run big.sase --input e.csv",
            {"big.sase": QUERY.replace("GROUP-BY", "WHERE B.v * 9000000000000000000 > 1 GROUP-BY")},
            ("big.sase",),
        ),
        Mistake("A misspelled column in --where", RUN + 'e.csv --where "kk = x"'),
    ],
    "Options": [
        Mistake("A value that an option does not have", RUN + "e.csv --sharing sometimes"),
        Mistake("An option that does not exist", RUN + "e.csv --shareing never"),
        Mistake("No threads", RUN + "e.csv --threads 0"),
        Mistake("A query that the workload lacks", RUN + "e.csv --query q2"),
        Mistake("A time zone that does not exist", RUN + "e.csv --timezone Europe/Berln"),
        Mistake(
            "Windows that fit no day of a time zone",
            "hamlet run five.sase --input e.csv --timezone Europe/Berlin",
            {"five.sase": QUERY.replace("1 h", "5 h")},
            ("five.sase",),
        ),
        Mistake("The order column is the time column", RUN + "e.csv --order-column time"),
        Mistake("An output directory that is not empty", RUN + "e.csv --output full", {"full/kept.txt": "kept\n"}),
        Mistake("An output that is a file", RUN + "e.csv --output e.csv"),
        Mistake("An output that is named like a file", RUN + "e.csv --limit 0 --output rows.csv"),
        Mistake(
            "A trace in place of the input",
            RUN + "e.jsonl --trace e.jsonl",
            {"e.jsonl": '{"time": 1, "type": "A", "k": "x", "v": 1}\n'},
        ),
        Mistake("A page among the results", RUN + "e.csv --output rows --report rows/page.html"),
        Mistake("A command that does not exist", "hamlet rum w.sase"),
        Mistake("A directory that holds the input", RUN + "in/e.csv --output in --overwrite", {"in/e.csv": EVENTS}),
        Mistake("Parquet to standard output", RUN + "e.csv --output - --output-format parquet"),
        Mistake("A size that is none", RUN + "e.csv --max-memory lots"),
        Mistake("Too little memory", RUN + "e.csv --max-memory 300"),
        Mistake(
            "A count that does not fit its type",
            "hamlet run w.sase --input long.csv --output out --count-type int64",
            {"long.csv": EVENTS + "".join(f"{1384300803 + each},B,x,{each}\n" for each in range(80))},
        ),
        Mistake("A workload that is not there", "hamlet check rides.sase"),
        Mistake("A workload of nearly that name", "hamlet check ww.sase"),
        Mistake("A page about a stream", "hamlet submit w.sase --stream --input in --output out --report page.html"),
        Mistake("A workload in another encoding", "hamlet check latin1.sase", {"latin1.sase": "-- Café\n" + QUERY}),
    ],
    "The environment": [
        Mistake(
            "No Java",
            "hamlet submit w.sase --input e.csv --output out",
            environment={"JAVA_HOME": "/opt/java"},
        ),
    ],
    "In Python": [
        Mistake(
            "A late event",
            "import hamlet\n\n"
            'engine = hamlet.Engine(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 10 s"), lateness=2)\n'
            'engine.push([{"time": 20, "type": "A"}])\n'
            'engine.push([{"time": 19, "type": "A"}, {"time": 11, "type": "A"}])\n',
        ),
        Mistake("A workload that was not read", 'import hamlet\n\nhamlet.run("rides.sase", "rides.csv")\n'),
        Mistake(
            "An option that does not exist",
            "import hamlet\n\n"
            'hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s"), [], sharding="never")\n',
        ),
        Mistake(
            "Two types in one attribute",
            "import hamlet\n\n"
            'workload = hamlet.Workload.parse("RETURN SUM(A.v) PATTERN A WITHIN 10 s")\n'
            'hamlet.run(workload, [{"time": 1, "type": "A", "v": 1}, {"time": 2, "type": "A", "v": "two"}])\n',
        ),
        Mistake(
            "Events of a form that cannot be read",
            'import hamlet\n\nhamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s"), 42)\n',
        ),
        Mistake(
            "An engine that is closed",
            "import hamlet\n\n"
            'engine = hamlet.Engine(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s"))\n'
            "engine.close()\n"
            'engine.push([{"time": 1, "type": "A"}])\n',
        ),
        Mistake(
            "Saved by another workload",
            "import hamlet\n\n"
            'one = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s")\n'
            'other = hamlet.Workload.parse("RETURN COUNT(*) PATTERN B WITHIN 1 s")\n'
            "hamlet.Engine.restore(other, hamlet.Engine(one).save())\n",
        ),
        Mistake(
            "A query that the results lack",
            "import hamlet\n\n"
            'workload = hamlet.Workload.parse("rides: RETURN COUNT(*) PATTERN A WITHIN 1 s")\n'
            'hamlet.run(workload, [{"time": 1, "type": "A"}]).table("ride")\n',
        ),
    ],
}

HEAD = """# Gallery of errors

What goes wrong, and what is said about it, word for word. This page is made of tests: every message here is checked.
All mistakes of a workload are reported at once, before any event is read. The command ends with exit code 2 where the
workload, the data or the options are wrong, and with 1 for anything else. Notes come where a run went well and may not
be what was meant. A text is shown where its message does not quote all of it.
"""


def page(folder: Path) -> str:
    """The whole of docs/errors.md."""
    parts = [HEAD]
    for section, names in IN_WORKLOADS.items():
        parts.append(f"## {section}\n")
        for name, title in names.items():
            text, said = (ERRORS / f"{name}.txt").read_text("utf-8").split(SEPARATOR)
            quoted = all(line.strip() in said for line in text.splitlines())
            said = _brief(said.rstrip())
            shown = "" if quoted else f"```text\n{text.strip()}\n```\n\n"
            parts.append(f"### {title}\n\n{shown}```text\n{said}\n```\n")
    for section, mistakes in SECTIONS.items():
        parts.append(f"## {section}\n")
        parts.append("The workload is `w.sase`, the events are `e.csv` where nothing else is shown:\n")
        if section == "The input":
            parts.append(f"```text\n{QUERY.strip()}\n```\n\n```text\n{EVENTS.strip()}\n```\n")
        else:
            parts.pop()
        for place, mistake in enumerate(mistakes):
            own = folder / f"{section}-{place}".replace(" ", "-")
            own.mkdir()
            said = mistake.said(own)
            files = "".join(f"`{name}`:\n\n```text\n{mistake.files[name].strip()}\n```\n\n" for name in mistake.shown)
            parts.append(f"### {mistake.title}\n\n{files}{_call(mistake)}```text\n{said.strip()}\n```\n")
    return "\n".join(line.rstrip() for line in "\n".join(parts).splitlines()) + "\n"


def _brief(said: str) -> str:
    """What is said, of very much the beginning and the end."""
    lines = said.splitlines()
    return said if len(lines) <= MOST_LINES else "\n".join([*lines[:12], "...", *lines[-4:]])


def _call(mistake: Mistake) -> str:
    if mistake.command.endswith("\n"):
        return f"<!-- not run: it raises what is below -->\n```python\n{mistake.command}```\n\n"
    variables = "".join(f"{name}={value} " for name, value in mistake.environment.items())
    return f"```text\n$ {variables}{mistake.command}\n```\n\n"
