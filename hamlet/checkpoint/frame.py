"""Saves as bytes: one frame for all notations.

Contract
--------
**Form.** A head of fixed length: magic, format, length of the description, version of the writer, length of all behind
the head, and a BLAKE2b digest. Then a description in JSON (notation, text, and the fields of the notation by name),
and the blobs that it describes (`hamlet.checkpoint.columns`). Little-endian, but for the states of kernels, which are
in the order of the machine.
**Refused** are bytes that are cut short or changed, of another format, notation or text. The digest finds damage, not
malice, so nothing else is believed either: whoever reads fields checks every number against what it points into. Bytes
that somebody has made up run no code, and ask for memory in proportion to their length.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hamlet.checkpoint.columns import WORD, BlobReader, BlobWriter, Json, text
from hamlet.errors import HamletError, MemoryLimitError, RestoreError
from hamlet.version import __version__

FORMAT = 11
MAGIC = b"\x93HAMLET\n"
HEAD = struct.Struct("<8sII24sQ32s")
_OWN = ("version", "byte_order", "notation", "text")
_SHOWN = 6  # words around the place where two texts differ


@dataclass(frozen=True)
class Work:
    """What a save is of.

    Attributes
    ----------
    notation : str
        ``queries``, ``policies``, ...
    text : str
        In a form that comments and layout make no difference to.
    """

    notation: str
    text: str


def write(work: Work, fields: Mapping[str, Json], blobs: BlobWriter) -> bytes:
    """A save of these fields."""
    own = {"version": __version__, "byte_order": sys.byteorder, "notation": work.notation, "text": work.text}
    description = json.dumps({**own, **fields}, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return sealed(description, blobs.parts)


def sealed(description: bytes, blobs: Sequence[Any], format: int = FORMAT, version: str = __version__) -> bytes:
    """A save of a description and its blobs."""
    rest = [description, bytes(-len(description) % WORD), *blobs]
    behind = sum(memoryview(part).nbytes for part in rest)
    head = (format, len(description), version.encode(), behind)
    return b"".join([HEAD.pack(MAGIC, *head, _digest(*head, rest)), *rest])


def _digest(format: int, length: int, version: bytes, behind: int, parts: Sequence[Any]) -> bytes:
    head = HEAD.pack(MAGIC, format, length, version, behind, bytes(32))
    digest = hashlib.blake2b(head, digest_size=32)
    for part in parts:
        digest.update(part)
    return digest.digest()


def read(work: Work, data: bytes | bytearray | memoryview, names: Sequence[str]) -> tuple[dict[str, Json], BlobReader]:
    """The fields of a save, which must be these, and its blobs.

    Raises
    ------
    RestoreError
        The bytes are damaged, or of another format, notation or text.
    """
    description, blobs = opened(data)
    if not isinstance(description, dict) or not set(_OWN) <= set(description):
        raise RestoreError("the save is damaged: its description cannot be read")
    with blamed():
        found = Work(text(description["notation"]), text(description["text"]))
        version, order = text(description["version"]), text(description["byte_order"])
    if found.notation != work.notation:
        raise RestoreError(f"the save is of {found.notation}, and not of {work.notation}")
    if found.text != work.text:
        raise RestoreError(
            f"the save is of other {work.notation}: they differ where {_difference(found.text, work.text)}\n"
            "hint: restore it with the text that it was saved with; comments and layout may differ, names may not"
        )
    if order != sys.byteorder:
        raise RestoreError("the save is of a machine with another order of bytes\nhint: restore it on such a machine")
    fields = {name: value for name, value in description.items() if name not in _OWN[1:]}
    if set(fields) != {"version", *names}:
        raise RestoreError(f"the save is damaged: the fields of its description are not those of format {FORMAT}")
    return {**fields, "version": version}, blobs


def opened(data: bytes | bytearray | memoryview) -> tuple[Any, BlobReader]:
    """The description and the blobs, of bytes that are whole."""
    try:
        view = memoryview(data).toreadonly().cast("B")
    except TypeError:
        raise RestoreError(f"a save is bytes, not a {type(data).__name__}") from None
    if view[: len(MAGIC)] != MAGIC[: len(view)]:
        raise RestoreError("these bytes are not a save of Hamlet\nhint: give what save() returned, unchanged")
    if len(view) < HEAD.size:
        raise _cut(len(view), "of at least", HEAD.size)
    _, format, length, version, behind, digest = HEAD.unpack_from(view)
    if format != FORMAT:
        writer = version.rstrip(b"\0").decode("ascii", "replace")
        raise RestoreError(
            f"the save has format {format}, of Hamlet {writer}, and Hamlet {__version__} reads format {FORMAT}\n"
            "hint: restore it with the version that wrote it"
        )
    rest = view[HEAD.size :]
    if len(rest) != behind:
        raise _cut(len(view), "instead of", HEAD.size + behind)
    if _digest(format, length, version, behind, [rest]) != digest:
        raise RestoreError("the save is damaged: its bytes do not fit their digest\nhint: take an older save")
    try:
        description = json.loads(bytes(rest[:length]).decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise RestoreError(f"the save is damaged: its description cannot be read ({error})") from None
    return description, BlobReader(rest[length + -length % WORD :])


def resealed(data: bytes, *, format: int = FORMAT, version: str = __version__) -> bytes:
    """A save as another format and version would have sealed it."""
    length = HEAD.unpack_from(data)[2]
    rest = data[HEAD.size :]
    return sealed(rest[:length], [rest[length + -length % WORD :]], format, version)


@contextmanager
def blamed() -> Iterator[None]:
    """Whatever goes wrong inside is the fault of the bytes."""
    try:
        yield
    except (RestoreError, MemoryLimitError):
        raise
    except MemoryError:
        raise RestoreError("there is not enough memory to restore the save") from None
    except (
        HamletError,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
        pa.ArrowException,
    ) as error:
        raise RestoreError(
            f"the save cannot be restored: {error}\n"
            "hint: its bytes fit their digest, so something else than save() has made them"
        ) from error


def _cut(found: int, word: str, wanted: int) -> RestoreError:
    return RestoreError(
        f"the save is not whole: it has {found} bytes {word} {wanted}\nhint: copy it again, or take an older one"
    )


def _difference(saved: str, now: str) -> str:
    """Where two texts differ first."""
    before, after = saved.split(), now.split()
    pairs = zip(before, after, strict=False)
    place = next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))
    begin = max(0, place - 2)
    shown = (" ".join(words[begin : place + _SHOWN]) or "nothing" for words in (before, after))
    return " it has {!r}, and these have {!r}".format(*shown).lstrip()
