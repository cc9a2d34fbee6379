"""What operator, admission and scheduler share: configuration, logs, metrics, health, events, leadership."""
