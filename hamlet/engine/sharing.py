"""Who decides which queries share a burst: the policy, the model and what it is told. Source: HAMLET §4."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from hamlet.planner.calibration import constants
from optimizer.benefit import Costs

Policy = Literal["dynamic", "static", "never", "random"]
Model = Literal["measured", "paper"]

RUNG = "burst-grained"  # what graphlets run on


@dataclass(frozen=True)
class Sharing:
    """How the kernel decides; results never depend on it.

    Attributes
    ----------
    policy : str
        ``dynamic`` asks the model per burst, ``static`` always shares, ``never`` never does; ``random`` decides by lot,
        for tests.
    model : str
        ``measured`` prices operations in nanoseconds, ``paper`` by Eq. 7.
    trace : bool
        Whether a record is kept for every burst.
    seed : int
        Of ``random``.
    """

    policy: Policy = "dynamic"
    model: Model = "measured"
    trace: bool = False
    seed: int = 0

    @cached_property
    def costs(self) -> Costs:
        """The model's constants, those of this machine where it was calibrated."""
        return constants(self.model).costs[RUNG]


DYNAMIC = Sharing()
