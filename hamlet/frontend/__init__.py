"""What the notations have in common before they mean anything: tokens, a place in them, messages, units of time."""
