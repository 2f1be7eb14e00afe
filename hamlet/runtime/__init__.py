"""What trend queries, policies, specifications and row patterns have in common while events come in."""
