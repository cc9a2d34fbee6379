"""One reconciler a kind: read the cache, ask plan/, apply the difference."""
