"""What has fallen below its floor for too long."""
