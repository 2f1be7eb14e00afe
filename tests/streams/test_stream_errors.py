"""Every message that a wrong specification gets, compared letter by letter.

Each file in tests/streams/errors holds a specification, a line of dashes, and what there is to say about it. After a
change of wording run ``HAMLET_WRITE_ERRORS=1 pytest tests/streams/test_stream_errors.py`` and read the difference.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from hamlet.errors import OptionError, WorkloadError
from hamlet.streams.check.analysis import analyse
from hamlet.streams.input_check import column_errors
from hamlet.streams.specification import Specification

FOLDER = Path(__file__).parent / "errors"
CASES = sorted(FOLDER.glob("*.txt"))
SEPARATOR = "\n----\n"
REWRITE = "HAMLET_WRITE_ERRORS" in os.environ


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden_messages(path: Path) -> None:
    text, _, expected = path.read_text("utf-8").partition(SEPARATOR)
    with pytest.raises(WorkloadError) as raised:
        analyse(text, f"{path.stem}.lola")
    if REWRITE:
        path.write_text(f"{text.rstrip(chr(10))}{SEPARATOR}{raised.value}\n", "utf-8")
    else:
        assert f"{raised.value}\n" == expected
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_errors_of_an_included_file_name_it(tmp_path: Path) -> None:
    (tmp_path / "shared.lola").write_text("input price: Float64\noutput wrong := price + 1\n")
    main = tmp_path / "main.lola"
    main.write_text('include "shared.lola"\noutput twice := price * 2.0\noutput other := prise\n')
    with pytest.raises(WorkloadError) as raised:
        Specification.from_file(main)
    said = str(raised.value)
    assert f"{tmp_path / 'shared.lola'}:2:17: Float64 and an integer have no common type" in said
    assert f"{main}:3:17: there is no stream 'prise'" in said
    (tmp_path / "shared.lola").write_text("input price: Float64\n")
    main.write_text('include "shared.lola"\ninclude "main.lola"\noutput twice := price * 2.0\n')
    assert [each.name for each in Specification.from_file(main).program.streams] == ["price", "twice"]
    main.write_text('include "nowhere.lola"\n')
    with pytest.raises(WorkloadError, match=r"cannot read nowhere\.lola"):
        Specification.from_file(main)
    with pytest.raises(WorkloadError, match="in no file"):
        Specification.parse('include "shared.lola"')


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "shop.lola").write_text("input a: Int64")
    with pytest.raises(OptionError, match=r"did you mean .*shop\.lola"):
        Specification.from_file(tmp_path / "shap.lola")
    (tmp_path / "latin.lola").write_bytes(b"input a: Int64 // \xe9")
    with pytest.raises(OptionError, match="UTF-8"):
        Specification.from_file(tmp_path / "latin.lola")
    with pytest.raises(OptionError, match="is a str"):
        Specification.parse(b"input a: Int64")  # type: ignore[arg-type]


def test_inputs_against_columns() -> None:
    program = Specification.parse("input price: Float64, open: Bool, name: String, where: (Int64, Int64)").program
    fits = {"price": pa.int32(), "open": pa.bool_(), "name": pa.dictionary(pa.int8(), pa.string()), "where": None}
    assert column_errors(program, fits) == ()
    found = column_errors(program, {"prise": pa.int64(), "open": pa.int8(), "name": pa.bool_()})
    assert [each.message for each in found] == [
        "the events have no column 'price'",
        "open is Bool, and its column holds int8",
        "name is String, and its column holds bool",
        "the events have no column 'where'",
    ]
