"""The validation rules, one family per file: pure functions from models to field errors."""
