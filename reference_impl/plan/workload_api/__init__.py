"""The back-end for gangs on kube-scheduler: what of Kubernetes' Workload API a PodGang becomes (GREP-531)."""
