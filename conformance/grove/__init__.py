"""The Grove API as an outsider knows it: names, labels, expected objects. The suite's own oracle; no I/O."""
