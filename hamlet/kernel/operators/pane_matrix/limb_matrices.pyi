from typing import Any

NAME: str
WHAT: str

def serves(tables: Any) -> bool: ...
