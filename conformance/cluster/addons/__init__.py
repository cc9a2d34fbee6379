"""Parts of the fake cluster that most clusters have but Kubernetes itself does not include: a storage driver and
metrics."""
