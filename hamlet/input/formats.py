"""The formats of files, and which one a file has by its name."""

from __future__ import annotations

from pathlib import Path

from hamlet.errors import OptionError, one_of

FORMATS = ("parquet", "csv", "json")
_EXTENSIONS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
COMPRESSIONS = (".gz", ".bz2", ".zst")  # of text files; Arrow unpacks them by extension
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
_ELSEWHERE = {
    "arrow": "an Arrow stream is read as it comes, by hamlet run, monitor and sql; write Parquet for what reads files",
    "monpoly": "a log of MonPoly is for policies (.mfotl), which hamlet monitor runs",
}
_PIECE = 1 << 22  # bytes of a file that are looked at in one go
NOT_UNPACKED = (".xz", ".zip", ".7z", ".lz4", ".tar", ".tgz", ".rar", ".z")


def may_contain(path: Path, text: bytes) -> bool:
    """Whether a file has some bytes (in lower case; letters of it in either); nobody looks into what is packed."""
    if path.suffix.lower() in COMPRESSIONS:
        return True
    with path.open("rb") as file:
        before = b""
        while piece := file.read(_PIECE):
            seen = before + piece.lower()
            if text in seen:
                return True
            before = seen[len(seen) - len(text) + 1 :]
    return False


def format_of(path: Path, input_format: str | None) -> str:
    """The format of a file: as given, else by its extension.

    Raises
    ------
    OptionError
        If the format or the extension is unknown.
    """
    if input_format is not None:
        if input_format in _ELSEWHERE:
            raise OptionError(_ELSEWHERE[input_format])
        if input_format not in FORMATS:
            raise OptionError(f"input format {input_format!r} is unknown; it must be {one_of(FORMATS)}")
        return input_format
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in NOT_UNPACKED:
        raise OptionError(
            f"{path} is compressed in a way that is not read here ({suffixes[-1]}); unpack it, or compress it with "
            f"one of {', '.join(COMPRESSIONS)}"
        )
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    if suffixes and suffixes[-1] in _SPREADSHEETS:
        raise OptionError(f"{path} is a spreadsheet, which is not read here; save it as CSV, in UTF-8")
    if suffixes and suffixes[-1] == ".arrow":
        raise OptionError(f"{path}: {_ELSEWHERE['arrow']}")
    found = _EXTENSIONS.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise OptionError(
            f"{path}: cannot tell the format from the name (known: {', '.join(_EXTENSIONS)}); "
            f"give --input-format {one_of(FORMATS)} (input_format=... in Python)"
        )
    return found
