"""numpy and pyarrow, loaded where something is first asked of them: what begins without columns need not wait for them.

Modules that a monitor begins with take them from here; a monitor of few events asks nothing of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    import importlib
    from types import ModuleType

    class _Later(ModuleType):
        """A module that becomes another one when it is first asked for something."""

        def __getattr__(self, name):
            module = importlib.import_module(self.__name__)
            vars(self).update(vars(module))  # from now on nothing comes by here but what is new in the module
            return getattr(module, name)

    np, npt, pa, pc = map(_Later, ("numpy", "numpy.typing", "pyarrow", "pyarrow.compute"))

__all__ = ["np", "npt", "pa", "pc"]
