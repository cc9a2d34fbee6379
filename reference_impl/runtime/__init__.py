"""Parts that operator, webhooks and scheduler share: clock, events, configuration, logs, metrics, health and leader
election."""
