"""The matching operator: skip-till-next-match, contiguous matching, SPAN, sessions and distinct values."""
