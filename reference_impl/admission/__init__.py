"""The admission webhooks: defaulting."""
