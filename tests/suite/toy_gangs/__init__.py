"""A cluster in memory with a gang scheduler of the Workload API, which breaks one promise on request. No time passes in
it: it moves when a scene waits.
"""
