"""The complete-window operator: tumbling windows that lie whole in a batch, computed at once."""
