"""The MATCH_RECOGNIZE clause: found in a statement, its row pattern parsed, its expressions read and checked."""
