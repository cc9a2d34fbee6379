"""Scenes: the environment that they play in, how they wait, and the recordings that tests judge."""
