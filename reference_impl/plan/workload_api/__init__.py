"""The back-end for gangs on kube-scheduler: maps a PodGang to objects of Kubernetes' Workload API (GREP-531)."""
