"""A proxy between the processes of one role and the API server, which can interfere with single writes and events."""
