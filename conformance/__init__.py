"""The conformance suite and its fake cluster: the judge of implementations of the Grove API.

It imports nothing from `reference_impl`.
"""
