from collections.abc import Sequence

class Automaton:
    """Integer tables of one template or of several side by side.

    Parameters
    ----------
    role_of : sequence of int
        Bit of the mask of an event that may enter each state; state 0 is the start.
    sources : for each state a sequence of (state, guards as bits, comparisons)
        Its transitions, its own loop first. A comparison, one at most, is (kept attribute, operator, column).
    finals : for each query a sequence of (state, guards as bits)
    guard_role : sequence of int
        Bit of the mask of the events that match each guard.
    kept_column : sequence of int
        Column of each attribute that comparisons read of the earlier event.
    adds : for each component and state the column that an event adds, -1 for none
    """

    def __init__(
        self,
        role_of: Sequence[int],
        sources: Sequence[Sequence[tuple[int, int, tuple[tuple[int, int, int], ...]]]],
        finals: Sequence[Sequence[tuple[int, int]]],
        guard_role: Sequence[int],
        kept_column: Sequence[int],
        adds: Sequence[Sequence[int]],
    ) -> None: ...
