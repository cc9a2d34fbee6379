"""The gang scheduler. `cycle.plan` decides, purely; `scheduler` watches, binds and evicts (docs/scheduling.md)."""
