"""A complete implementation of the Grove API. Imports nothing of `conformance`."""
