"""Policies on the command line: rows in every form, explain, pages, and mistakes with exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hamlet.cli import main
from hamlet.policies import Policy

ROOT = Path(__file__).resolve().parents[2]
SIGNATURE = "withdraw(user: string, amount: int)\nreport(user: string)\n"
RULE = "ALWAYS FORALL u, a. withdraw(u, a) AND a > 1000 IMPLIES EVENTUALLY[0,1d] report(u)"
CSV = (
    "time,type,user,amount\n0,withdraw,alice,2000\n0,withdraw,bob,10\n5,report,carol,\n"
    "100000,report,alice,\n100000,withdraw,dora,5000\n100001,other,,\n"
)
LOG = "@0 withdraw(alice,2000)(bob,10) @5 report(carol) @100000 report(alice) withdraw(dora,5000) @100001"
ROWS = [
    {"policy": "w", "time": 0, "time_point": 0, "u": "alice", "a": 2000},
    {"policy": "w", "time": 100000, "time_point": 2, "u": "dora", "a": 5000},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rule, its signature, and events as a table and as a log; the current folder."""
    for name, text in (("w.sig", SIGNATURE), ("w.mfotl", RULE), ("w.csv", CSV), ("w.log", LOG)):
        (tmp_path / name).write_text(text)
    (tmp_path / "neg.mfotl").write_text("NOT report(u)")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints; on standard error where it fails."""
    assert main(list(arguments)) == code
    out, err = capsys.readouterr()
    return out if code == 0 else err


@pytest.mark.parametrize("source", ["w.csv", "w.log"])
def test_tables_and_logs_give_the_same_rows(folder: Path, capsys: pytest.CaptureFixture[str], source: str) -> None:
    assert folder.is_dir()
    arguments = ["monitor", "w.mfotl", "--signature", "w.sig", "--input", source, "--quiet"]
    lines = said(capsys, *arguments, "--output", "-").splitlines()
    assert [json.loads(line) for line in lines] == ROWS
    assert said(capsys, *arguments, "--output", "-", "--output-format", "monpoly") == (
        '@0 (time point 0): ("alice",2000)\n@100000 (time point 2): ("dora",5000)\n'
    )
    assert said(capsys, *arguments, "--output", "-", "--output-format", "csv", "--open-end") == (
        "policy,time,time_point,u,a\nw,0,0,alice,2000\n"
    )
    table = said(capsys, *arguments)
    assert table.startswith("w: 2 violations\n")
    assert "dora" in table


@pytest.mark.parametrize("output_format", ["parquet", "csv", "json", "monpoly"])
def test_a_directory_has_a_folder_for_each_policy(folder: Path, output_format: str) -> None:
    arguments = ["monitor", "w.mfotl", "neg.mfotl", "-s", "w.sig", "-i", "w.csv", "-q", "--negate"]
    assert main([*arguments, "-o", "out", "--output-format", output_format, "--report", "page.html"]) == 0
    files = sorted(path.relative_to(folder / "out").as_posix() for path in (folder / "out").rglob("part-*"))
    ending = "log" if output_format == "monpoly" else output_format
    assert files == [f"policy={name}/part-00000.{ending}" for name in ("neg", "w")]
    if output_format == "parquet":
        found = pq.read_table(folder / "out" / files[1], partitioning=None).to_pylist()
        assert [{"policy": "w", **row} for row in found] == ROWS
    page = (folder / "page.html").read_text()
    assert "violations over time" in page
    assert "dora" in page


def test_check_and_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no errors" in said(capsys, "check", "w.mfotl", "--signature", "w.sig", "--input", "w.csv")
    text = said(capsys, "explain", "w.mfotl", "--signature", "w.sig")
    assert "rows        violations: time, time_point, u, a" in text
    assert "EVENTUALLY [0,1d]" in text
    facts = json.loads(said(capsys, "explain", "w.mfotl", "--signature", "w.sig", "--format", "json"))
    assert facts["memory"] == "linear in the events of its interval"
    assert facts["formula"]["free_variables"] == ["u", "a"]
    assert said(capsys, "explain", "w.mfotl", "-s", "w.sig", "--format", "dot").startswith('digraph "w" {')
    said(capsys, "explain", "w.mfotl", "-s", "w.sig", "--html", "w.html")
    assert "EVENTUALLY" in (folder / "w.html").read_text()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("report(u) SINCE[0,5] report(u)", ["keeps the periods of valuations in the last [0,5]; linear in the events"]),
        (
            "report(u) SINCE report(u)",
            ["first and the last time-point of each valuation", "in the distinct valuations"],
        ),
        ("report(u) UNTIL[0,3] report(u)", ["keeps the time-points of [0,3], and the periods of valuations in it"]),
        ("PREV report(u)", ["keeps the body's valuations at the last time-point; linear"]),
        ("PREV EXISTS u. report(u)", ["keeps the body's valuations at the last time-point; independent", "EXISTS u"]),
        ("NEXT EXISTS u. report(u)", ["keeps the last time-point, until the next one comes; independent"]),
        ("ONCE[0,5] EXISTS u. report(u)", ["()  keeps the periods of the last [0,5]; independent of the event rate"]),
        ("EVENTUALLY[0,9] EXISTS u. report(u)", ["keeps the periods of [0,9] to come; independent of the event rate"]),
        ("c <- CNT a; u withdraw(u, a)", ["c <- CNT a; u ", "memory      none"]),
        ("s <- SUM a withdraw(u, a)", ["s <- SUM a "]),
        ("LET named(u) = report(u) IN ONCE[0,5] named(u)", ["\n          named(u)", "\n            report(u)"]),
    ],
)
def test_what_a_policy_keeps(folder: Path, capsys: pytest.CaptureFixture[str], text: str, lines: list[str]) -> None:
    (folder / "kept.mfotl").write_text(text)
    shown = said(capsys, "explain", "kept.mfotl", "-s", "w.sig", "--quiet")
    for line in lines:
        assert line in shown


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["monitor", "w.mfotl", "-i", "w.csv"], "policies need --signature"),
        (["monitor", "w.mfotl", "-s", "w.sig", "-i", "w.csv", "--values"], "--values is for stream specifications"),
        (["monitor", "w.mfotl", "-s", "w.sig", "-i", "no.csv"], "no such file: no.csv"),
        (["monitor", "no.mfotl", "-s", "w.sig", "-i", "w.csv"], "there is no policy 'no.mfotl'"),
        (["monitor", "w.sase", "-s", "w.sig", "-i", "w.csv"], "ends in .mfotl (a policy) or .lola"),
        (["check", "neg.mfotl", "-s", "w.sig"], "neg.mfotl:1:5: the variable 'u' is not bound"),
        (["monitor", "w.mfotl", "w.mfotl", "-s", "w.sig", "-i", "w.csv"], "have one name"),
        (["monitor", "w.mfotl", "-s", "w.sig", "-i", "w.log", "--where", "x > 1"], "a log of MonPoly has no columns"),
        (["monitor", "w.mfotl", "-s", "w.sig", "-i", "w.csv", "--max-memory", "10"], "policy 'w'"),
        (
            ["monitor", "w.mfotl", "-s", "w.sig", "-i", "w.csv", "-o", "-", "--output-format", "parquet"],
            "Parquet cannot",
        ),
        (
            ["monitor", "w.mfotl", "-s", "w.sig", "-i", "w.csv", "--verdicts", "all"],
            "the same free variables in every predicate",
        ),
        (["run", "w.mfotl", "-i", "w.csv"], "hamlet monitor runs w.mfotl"),
        (["check", "w.sase", "-s", "w.sig"], "--signature is for policies"),
        (["submit", "w.sase", "-i", "w.csv", "-o", "out", "--negate"], "--negate is for policies"),
        (["submit", "w.mfotl", "-s", "w.sig", "-i", "w.csv", "-o", "out", "--balance"], "--balance is for workloads"),
    ],
)
def test_mistakes(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    assert folder.is_dir()
    assert expected in said(capsys, *arguments, code=2)


def test_mistakes_of_all_files_are_told_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.mfotl").write_text("withdraw(u)")
    (folder / "b.mfotl").write_text("reports(u) AND")
    text = said(capsys, "monitor", "a.mfotl", "b.mfotl", "-s", "w.sig", "-i", "w.csv", code=2)
    assert "a.mfotl:1:" in text
    assert "b.mfotl:1:" in text


def test_unknown_predicates_of_a_log_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "w.log").write_text(LOG + " transfer(1,2)(3,4)")
    arguments = ["monitor", "w.mfotl", "-s", "w.sig", "-i", "w.log", "-o", "-"]
    assert "w.log:1:100: the signature has no predicate 'transfer'" in said(capsys, *arguments, code=2)
    assert main([*arguments, "--ignore-unknown"]) == 0
    assert "note: 2 events are of no predicate" in capsys.readouterr().err


def test_integers_of_any_size(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "big.mfotl").write_text("withdraw(u, a) AND b = a * 9223372036854775807 * a")
    arguments = ["monitor", "big.mfotl", "-s", "w.sig", "-i", "w.csv", "-q"]
    rows = [json.loads(line) for line in said(capsys, *arguments, "-o", "-").splitlines()]
    rows.sort(key=lambda row: row["time"] * 10**9 - row["a"])
    assert [row["b"] for row in rows] == [a * a * 9223372036854775807 for a in (2000, 10, 5000)]
    assert "9.22e+20" in said(capsys, *arguments)
    assert "a value of b has more than 64 bits" in said(capsys, *arguments, "-o", "out", code=2)
    assert not (folder / "out").exists()


SIGNATURES = {
    **dict.fromkeys(("star", "linear", "triangle", "star_past", "linear_past", "triangle_past"), "papers"),
    **dict.fromkeys(("insert", "delete", "custom"), "campaign"),
}
POLICIES = sorted(path.stem for path in (ROOT / "workloads").glob("*.mfotl"))


@pytest.mark.parametrize("name", POLICIES)
def test_the_policies_of_this_project_can_be_monitored(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, signature = ROOT / "workloads" / f"{name}.mfotl", SIGNATURES.get(name, name.split("_")[0])
    assert path.read_text().startswith("# ")
    signature_path = ROOT / "workloads" / f"{signature}.sig"
    if not name.startswith("mtl_"):
        assert "no errors" in said(capsys, "check", str(path), "--signature", str(signature_path))
    policy = Policy.from_file(path, signature_path)
    assert Policy.parse(str(policy), policy.signature, policy.name) == policy
