"""Changes of a set in any order and number: its end must depend only on the last desired state."""
