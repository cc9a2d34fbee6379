"""The fake cluster: where its binaries come from, how it starts and ends, its nodes and pod life cycles.

Knows no Grove name but those of the init container that it plays (`init_wait`).
"""
