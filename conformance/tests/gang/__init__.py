"""Gangs: when their pods may be scheduled, and that they are placed together or not at all."""
