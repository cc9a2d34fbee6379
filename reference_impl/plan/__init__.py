"""Pure functions from observed state to desired state: names, objects, gangs, statuses. No I/O."""
