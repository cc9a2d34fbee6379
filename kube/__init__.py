"""Kubernetes machinery that both sides use: client, watch cache, work queue. Knows no Grove names, imports neither
package."""
