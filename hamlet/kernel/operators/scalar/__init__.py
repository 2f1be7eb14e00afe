"""The scalar operator: the sums of one query and key, event by event, in numbers of any size."""
