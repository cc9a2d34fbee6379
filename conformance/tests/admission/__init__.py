"""Admission: which requests are accepted, defaulted and rejected."""
