"""The pytest plugin: requirements, profiles, the fixtures of a test, outcomes and the ledger."""
