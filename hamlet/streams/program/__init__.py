"""A checked specification as a program: typed expressions, resolved accesses, memory known before data is read."""
