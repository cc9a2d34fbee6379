"""The rules of admission, a family a file: pure functions from models to field errors."""
