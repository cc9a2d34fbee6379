"""What the fake cluster plays of a kubelet beyond KWOK: waiting init containers, and node failures."""
