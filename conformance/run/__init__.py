"""One conformance run from settings to an exit code. The layer above the suite and the reports."""
