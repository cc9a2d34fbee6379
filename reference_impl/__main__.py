"""The entry point for `python -m reference_impl`."""

from grove_conformance.start import reference

reference()
