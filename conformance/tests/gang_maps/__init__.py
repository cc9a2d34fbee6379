"""Which PodGang holds which pods: the PodGangMap of each replica, and what follows it."""
