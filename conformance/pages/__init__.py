"""The base template of all HTML pages, its style, and how a page is rendered."""
