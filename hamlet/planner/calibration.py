"""The prices that the sharing decision reckons with: those of this machine where it was calibrated, else shipped ones.

`hamlet calibrate` measures the constants of the model ``measured`` (`hamlet.engine.calibrate`) and keeps them where
the user's other caches live, as one JSON document::

    {"format": 1, "hamlet": "0.1.0", "processor": "...", "measured_at": "2026-11-21T10:00:00+00:00",
     "costs": {"burst-grained": {"reads": "one", "coefficient": 0.5, ..., "misfit": 0.04}, ...}}

A document that is damaged, of another processor or of another version of Hamlet is not used: a warning says so, and the
shipped constants stand in. Results never depend on any of them, only speed does.

Source: HAMLET (SIGMOD'21) §4.1, Eq. 7 (the model `paper`).
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from hamlet.errors import CalibrationWarning, OptionError, OutputError, one_of
from hamlet.version import __version__
from optimizer.benefit import MEASURED, PAPER, Costs

FORMAT = 1
FILE_NAME = "calibration.json"
MODELS = ("measured", "paper")
_PRICES = tuple(each.name for each in fields(Costs))


@dataclass(frozen=True)
class Constants:
    """The prices of a model, and where they come from.

    Attributes
    ----------
    model : str
        ``measured`` or ``paper``.
    costs : mapping of str to Costs
        By rung, the keys of `optimizer.benefit.MEASURED`; nanoseconds, under ``paper`` operations.
    origin : str
        ``paper``, ``shipped`` or ``calibrated``.
    path : Path or None
        The file of calibrated ones.
    measured_at : datetime or None
        When they were measured (UTC), None unless calibrated.
    misfit : mapping of str to float
        By rung: by how much of itself a measured time typically differs from the fitted one; empty unless calibrated.
    """

    model: str
    costs: Mapping[str, Costs]
    origin: str
    path: Path | None = None
    measured_at: datetime.datetime | None = None
    misfit: Mapping[str, float] | None = None

    @property
    def text(self) -> str:
        """Where the prices come from, in words."""
        if self.origin == "calibrated" and self.measured_at is not None:
            return f"calibrated on this machine on {self.measured_at:%Y-%m-%d %H:%M} UTC ({self.path})"
        return {"paper": "Eq. 7 of the paper, in operations"}.get(
            self.origin, "as shipped; hamlet calibrate measures those of this machine"
        )


def constants(benefit: str = "measured") -> Constants:
    """The prices of a benefit model on this machine.

    Parameters
    ----------
    benefit : {'measured', 'paper'}
        The option of that name.

    Returns
    -------
    Constants
        Calibrated ones where there is a file of them that can be used; a file that cannot be used is a
        `CalibrationWarning`.

    Raises
    ------
    OptionError
        Another model.
    """
    if benefit not in MODELS:
        raise OptionError(f"benefit is {benefit!r}; it must be {one_of([repr(model) for model in MODELS])}")
    if benefit == "paper":
        return Constants("paper", dict.fromkeys(MEASURED, PAPER), "paper")
    place = path()
    try:
        text = place.read_text(encoding="utf-8")
    except FileNotFoundError:
        return shipped()
    except (OSError, UnicodeDecodeError) as error:
        return _unusable(place, str(error))
    try:
        return _read(text, place)
    except _Unusable as reason:
        return _unusable(place, str(reason))


def shipped() -> Constants:
    """The constants that come with Hamlet."""
    return Constants("measured", MEASURED, "shipped")


def path() -> Path:
    """The file of this user's calibration, whether it is there or not.

    ``$XDG_CACHE_HOME/hamlet`` where that is set, else ``~/.cache/hamlet``; on macOS ``~/Library/Caches/hamlet``.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):  # a relative one is to be ignored, says the XDG Base Directory Specification
        caches = Path(given)
    elif sys.platform == "darwin":
        caches = Path("~/Library/Caches")
    else:
        caches = Path("~/.cache")
    try:
        return caches.expanduser() / "hamlet" / FILE_NAME
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / "hamlet" / FILE_NAME


def processor() -> str:
    """The name of this machine's processor: constants of another one are not used."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = re.findall(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(errors="replace"), re.MULTILINE)
        if names:
            return str(names[0]).strip()
    return platform.processor() or platform.machine()


def store(costs: Mapping[str, Costs], misfit: Mapping[str, float]) -> Constants:
    """Keep measured constants, in place of any kept before; a reader sees the old file or the new one, never a part.

    Parameters
    ----------
    costs : mapping of str to Costs
        For every rung.
    misfit : mapping of str to float
        See `Constants`.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    place, now = path(), datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    document = {
        "format": FORMAT,
        "hamlet": __version__,
        "processor": processor(),
        "measured_at": now.isoformat(),
        "costs": {rung: asdict(each) | {"misfit": misfit[rung]} for rung, each in costs.items()},
    }
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            (new := Path(folder) / FILE_NAME).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
            new.replace(place)
    except OSError as error:
        raise OutputError(f"cannot keep the calibration in {place}: {error.strerror or error}") from None
    return Constants("measured", costs, "calibrated", place, now, misfit)


def forget() -> bool:
    """Remove the file, so that the shipped constants count again; False where there was none."""
    try:
        path().unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise OutputError(f"cannot remove {path()}: {error.strerror or error}") from None
    return True


class _Unusable(Exception):
    """A calibration that must not be used, and why."""


def _unusable(place: Path, reason: str) -> Constants:
    text = f"the calibration in {place} is not used: {reason}; 'hamlet calibrate' measures anew"
    warnings.warn(text, CalibrationWarning, stacklevel=3)
    return shipped()


def _read(text: str, place: Path) -> Constants:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Unusable(f"it is damaged ({error})") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _Unusable("it is damaged, or of another version of Hamlet")
    for name, mine in (("hamlet", __version__), ("processor", processor())):
        if document.get(name) != mine:
            raise _Unusable(f"it was measured with {name} {document.get(name)!r}, this is {mine!r}")
    try:
        when = datetime.datetime.fromisoformat(document["measured_at"]).astimezone(datetime.UTC)
        costs = {rung: _costs(document["costs"][rung]) for rung in MEASURED}
        misfit = {rung: float(document["costs"][rung]["misfit"]) for rung in MEASURED}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _Unusable(f"it is damaged ({type(error).__name__}: {error})") from None
    return Constants("measured", costs, "calibrated", place, when, misfit)


def _costs(found: Mapping[str, Any]) -> Costs:
    """`Costs` checks the values, but would take text for a number."""
    reads, *prices = (found[name] for name in _PRICES)
    if any(isinstance(price, bool) or not isinstance(price, (int, float)) for price in prices):
        raise ValueError("a price is no number")
    return Costs(reads, *prices)
