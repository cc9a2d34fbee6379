"""Changes of a set in any order and number. The state in which the set ends must depend only on its last desired
state."""
