"""The suite's own reading of the admission rules (api.md sections 5 to 12), written from the specification."""
