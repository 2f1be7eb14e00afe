"""The notation of policies: text to tokens to a syntax tree, and signatures; every mistake with its place."""
