"""The session of a worker: its cluster, what is on it, and how tests are shared out and reported."""
