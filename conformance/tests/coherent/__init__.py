"""The profile `coherent`: updates with the strategy Coherent, in which every gang is of one version."""
