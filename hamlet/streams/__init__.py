"""Stream equations and triggers: RTLola specifications over the events that queries read.

A specification computes streams of values, at events and at given frequencies, and triggers fire where something
computed crosses a line::

    spec = hamlet.streams.Specification.parse("input price: Float64  trigger price > 100.0")
"""

from hamlet.output.result import Results
from hamlet.streams.monitor import Monitor
from hamlet.streams.run import run
from hamlet.streams.specification import Specification

__all__ = ["Monitor", "Results", "Specification", "run"]
