"""One stream on several threads or machines: by time, and by key."""
