"""The Grove API as its specification describes it: names, labels and expected objects. This is the suite's own oracle,
and does not access a cluster."""
