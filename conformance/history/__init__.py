"""All watch events of a cluster in one ordered log, and waits and queries on it."""
