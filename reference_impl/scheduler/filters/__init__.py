"""The filters of kube-scheduler, one plugin per file: they decide which nodes a pod may be placed on."""
