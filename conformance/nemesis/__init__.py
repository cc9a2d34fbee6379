"""Fault injection by a proxy between an implementation and the API server: crashes, delays, and wrong responses."""
