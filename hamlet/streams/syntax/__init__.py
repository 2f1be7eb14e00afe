"""The notation of specifications: text to tokens to a syntax tree, with every syntax error of the file."""
