"""The memory of compiled modules: arrays that grow, and the account of a run (`budget.pxd`)."""
