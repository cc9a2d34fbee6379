"""Scenes: their environment, their waits, and the recordings that tests judge."""
