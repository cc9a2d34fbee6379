"""More and fewer replicas, at every level."""
