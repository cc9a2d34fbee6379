"""Helpers shared by the conformance tests of several profiles. No profile imports another profile."""
