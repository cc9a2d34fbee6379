"""What a run does on a cluster that it has not started: who uses it, what a run leaves there, and KWOK's stages."""
