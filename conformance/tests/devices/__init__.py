"""Gangs whose pods need devices of Dynamic Resource Allocation."""
