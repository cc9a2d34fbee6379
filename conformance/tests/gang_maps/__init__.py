"""PodGangMaps: the assignment of pods to PodGangs in each replica, and the objects that follow it."""
