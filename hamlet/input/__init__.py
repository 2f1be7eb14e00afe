"""Where events come from: every form that they may have, as Arrow batches in time order."""
