"""One conformance run, from settings to an exit code. This layer is above the suite and the reports."""
