"""What happened: every watch event of a cluster in one ordered log, waiting on it, and rules over it."""
