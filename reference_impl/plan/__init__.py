"""Pure functions that compute desired state from observed state: names, objects, gangs, statuses. They do no I/O."""
