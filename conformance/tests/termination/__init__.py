"""Gang termination: replicas that are below a minimum for too long are recreated, and no other objects are."""
