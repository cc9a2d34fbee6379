"""The filters of kube-scheduler: which nodes a pod may be placed on, one plugin a file."""
