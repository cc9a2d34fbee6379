"""Parts of the fake cluster that most clusters have and Kubernetes itself has not: a storage driver, and metrics."""
