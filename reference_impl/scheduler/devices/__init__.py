"""Devices of Dynamic Resource Allocation (DRA): which claims can be allocated where, and what is written for them."""
