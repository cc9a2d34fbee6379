"""What the fake cluster plays of a kubelet beyond KWOK: init containers that wait, and nodes that fail."""
