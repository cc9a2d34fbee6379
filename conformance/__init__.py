"""The conformance suite and its fake cluster: what judges an implementation of the Grove API.

Imports nothing of `reference_impl`.
"""
