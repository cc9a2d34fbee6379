"""The gang scheduler. The pure function `cycle.plan` decides; `scheduler` watches, binds and evicts
(docs/scheduling.md)."""
