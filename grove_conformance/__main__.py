"""`python -m grove_conformance` runs `grove-conformance`, even if the working directory contains packages of the same
names."""

from grove_conformance.start import suite

suite()
