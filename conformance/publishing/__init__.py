"""Verify reports, publish them, and show the published ones as a matrix. Nothing that a run needs is here."""
