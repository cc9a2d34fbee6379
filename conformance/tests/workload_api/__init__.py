"""Gangs of Kubernetes' Workload API on the scheduler of the cluster, with groups and pods made by hand."""
