"""The text of a file."""

from __future__ import annotations

import os
from pathlib import Path

from hamlet.errors import OptionError, similar_file


def text_of_file(path: str | os.PathLike[str], kind: str) -> str:
    """The text of a file in UTF-8, with the ends of lines that it has.

    Parameters
    ----------
    path : path
    kind : str
        What is written there, for messages: ``workload``.

    Raises
    ------
    OptionError
        If it cannot be read; the message names a file beside it that is named alike.
    """
    name = os.fspath(path)
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise OptionError(f"there is no {kind} {name!r}{similar_file(Path(path))}") from None
    except IsADirectoryError:
        raise OptionError(f"the {kind} {name!r} is a folder; name a file in it") from None
    except UnicodeDecodeError as error:
        raise OptionError(f"the {kind} {name!r} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OptionError(f"cannot read the {kind} {name!r}: {reason}") from None
