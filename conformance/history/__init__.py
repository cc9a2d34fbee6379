"""All watch events of a cluster in one ordered log, with waits for and queries of its records."""
