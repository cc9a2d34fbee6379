"""The gang scheduler. `cycle.plan` decides as a pure function; `scheduler` watches, binds and evicts
(docs/scheduling.md)."""
