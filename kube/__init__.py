"""What both sides need of Kubernetes: client, watch cache, work queue. Knows no Grove name, imports neither package."""
