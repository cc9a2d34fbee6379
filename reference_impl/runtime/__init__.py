"""Common parts of operator, webhooks and scheduler: clock, events, configuration, logs, metrics, health, leader
election."""
