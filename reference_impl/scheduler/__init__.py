"""The gang scheduler. `rounds.plan` decides, purely; `scheduler` watches, binds and evicts (docs/scheduling.md)."""
