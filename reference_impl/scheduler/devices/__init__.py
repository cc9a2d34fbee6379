"""Devices of Dynamic Resource Allocation (DRA): which claims can be allocated on which nodes, and which results are
written to them."""
