"""The admission webhooks: defaulting, validation, authorization."""
