"""Parts of a kubelet that the fake cluster simulates in addition to KWOK: waiting init containers, and node
failures."""
