"""Parts shared by operator, webhooks and scheduler: clock, events, configuration, logs, metrics, health, leader
election."""
