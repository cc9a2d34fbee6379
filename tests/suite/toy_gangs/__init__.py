"""An in-memory cluster with a gang scheduler for the Workload API, which breaks one promise on request. No time passes
in the cluster; its state changes only while a scene waits.
"""
