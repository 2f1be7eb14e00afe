"""What an engine has inside, for tests and measurements; nothing of it is a promise."""

from __future__ import annotations

from hamlet._core import Kernel
from hamlet.engine.executor import Executor
from hamlet.engine.online import Engine
from hamlet.language.schema import Schema


def executor_of(engine: Engine) -> Executor:
    """What computes; it is there once an event has come."""
    found = engine._executor
    assert found is not None, "no event has come"
    return found


def kernels_of(engine: Engine) -> list[Kernel]:
    """The kernels of all classes of queries."""
    return [kernel for runner in executor_of(engine)._classes for kernel in runner.kernels]


def groups_of(engine: Engine) -> int:
    """How many groups are numbered, of the class that has most."""
    return max(runner.index.size for runner in executor_of(engine)._classes)


def schema_of(engine: Engine) -> Schema:
    """What is known of the columns."""
    found = engine._schema
    assert found is not None, "no event has come"
    return found
