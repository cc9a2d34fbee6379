"""One reconciler per kind: read the cache, ask `plan/` for the desired state, apply the difference."""
