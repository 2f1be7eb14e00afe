import numpy as np
import numpy.typing as npt

from bench.baselines._automaton import Automaton

class Graph:
    """The state of one window and partition; see the module's source.

    Attributes
    ----------
    steps : int
        How often the inner loop ran.
    """

    steps: int
    def __init__(self, automaton: Automaton) -> None: ...
    def feed(
        self,
        events: npt.NDArray[np.int64],
        steps: npt.NDArray[np.int64],
        masks: npt.NDArray[np.uint64],
        values: npt.NDArray[np.float64],
    ) -> None:
        """Take the events of these numbers, in order and whole steps at a time.

        Parameters
        ----------
        events : numpy.ndarray of int64
            Rows of the other three.
        steps : numpy.ndarray of int64
            Equal for events that neither precedes the other.
        masks : numpy.ndarray of uint64
            The roles that accept each event, as bits.
        values : numpy.ndarray of float64, shape (rows, columns), C-contiguous
        """

    def result(self) -> list[tuple[list[float], int]]:
        """For each query the count and the components, and the power of two by which they are multiplied."""
