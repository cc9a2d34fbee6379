"""A proxy between the processes of one role and the API server. It can interfere with individual writes and events."""
