"""A complete implementation of the Grove API. It imports nothing from `conformance`."""
