"""The validation rules, one family in each file. They are pure functions that take models and return field errors."""
