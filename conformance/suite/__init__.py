"""The pytest plugin: requirements, profiles, test fixtures, outcomes and the ledger."""
