"""What a notation gives, which is six things, and what it gets for them: a monitor, runs, saves, streams, rows."""

from hamlet.notation.monitor import StepMonitor
from hamlet.notation.notation import Evaluator, Notation, Plan, Work
from hamlet.notation.run import run

__all__ = ["Evaluator", "Notation", "Plan", "StepMonitor", "Work", "run"]
