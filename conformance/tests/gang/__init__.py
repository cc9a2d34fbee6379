"""Gangs: when their pods may be scheduled, and whether a gang's pods are placed together or not at all."""
