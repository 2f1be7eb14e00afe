"""The engine: what is known of a stream as it arrives, and the rows of windows once they close."""
