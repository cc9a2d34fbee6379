"""`python -m conformance`."""

from grove_conformance.start import suite

suite()
