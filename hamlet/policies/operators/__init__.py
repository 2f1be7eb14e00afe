"""The operators of an evaluation: each takes its children's periods, batch after batch, and gives its own."""
