"""The base template of all HTML pages, its style, and functions that render pages."""
