"""PodGangMaps, which assign the pods of each replica to PodGangs, and the objects that follow the maps."""
