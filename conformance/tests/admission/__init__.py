"""Admission: what is accepted, defaulted and refused."""
