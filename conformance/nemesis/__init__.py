"""What an implementation does when it is killed, late or lied to, found by a proxy between it and the API server."""
