"""Gangs of Kubernetes' Workload API on the scheduler of the cluster. The suite or the operator creates the groups and
pods."""
