"""One reconciler per kind: it reads the cache, asks `plan/` for the desired state, and writes the difference."""
