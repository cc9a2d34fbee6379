"""The fake cluster: its programs, its start and end, its nodes and the lifecycle of its pods.

It knows nothing of Grove except the init container that it plays (`init_wait`).
"""
