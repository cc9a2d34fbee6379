"""What operator, webhooks and scheduler share: clock, events, configuration, logs, metrics, health, leader election."""
