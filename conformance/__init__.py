"""The conformance suite, which judges implementations of the Grove API, and its fake cluster.

This package imports nothing from `reference_impl`.
"""
