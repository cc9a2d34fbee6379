"""Scenes: what is played in a namespace, how it is waited for, and the recordings that tests judge."""
