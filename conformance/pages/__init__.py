"""What all HTML pages share: the base template, its style, and how a page is rendered."""
