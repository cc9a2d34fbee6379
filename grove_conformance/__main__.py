"""`python -m grove_conformance`: `grove-conformance`, whatever the working directory contains."""

from grove_conformance.start import suite

suite()
