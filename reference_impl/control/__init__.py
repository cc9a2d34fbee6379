"""The reconcilers, one for each kind. A reconciler reads the cache, computes the desired state with `plan/`, and writes
the difference."""
