"""Pure functions from what is seen to what should be: names, objects, gangs, statuses. No I/O."""
