"""What the engine is compared with, one module per peer or class of algorithms."""
