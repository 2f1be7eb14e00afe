"""What the checker says where it does not accept evidence."""

from __future__ import annotations

from hamlet.errors import HamletError


class EvidenceError(HamletError):
    """Evidence that does not show what it claims.

    Attributes
    ----------
    node : int or None
        The node, step or row of the evidence that is wrong, from 0.
    reason : str
    """

    def __init__(self, reason: str, node: int | None = None) -> None:
        super().__init__(reason if node is None else f"node {node}: {reason}")
        self.node = node
        self.reason = reason
