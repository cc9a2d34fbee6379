"""The fake cluster: its programs, its start and end, its nodes, and the lifecycle of its pods.

It is independent of Grove, except for the init container that it simulates (`init_wait`).
"""
