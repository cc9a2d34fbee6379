"""Objects that come and go: deletion, restarts, upgrades."""
