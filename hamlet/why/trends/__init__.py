"""Evidence for the rows of trend queries: the trends behind a row as a graph, whose paths they are."""
