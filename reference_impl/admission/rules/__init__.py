"""The validation rules, one family per file: pure functions that take models and return field errors."""
