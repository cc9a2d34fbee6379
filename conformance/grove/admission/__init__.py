"""The suite's own reading of the admission rules (docs/spec/admission.md, sections 5 to 12)."""
