"""The session of a worker: its cluster and what is on it, and the distribution and reporting of tests."""
