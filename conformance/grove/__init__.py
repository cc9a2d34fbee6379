"""The Grove API as its specification describes it: names, labels, expected objects. The suite's own oracle; no I/O."""
