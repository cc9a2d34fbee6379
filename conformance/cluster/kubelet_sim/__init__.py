"""Parts of a kubelet that the fake cluster plays beyond KWOK: waiting init containers, and node failures."""
