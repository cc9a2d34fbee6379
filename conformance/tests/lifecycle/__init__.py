"""The life of objects: deletion, restarts and upgrades."""
