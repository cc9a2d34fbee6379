"""Changes of a set in any order and number: where it ends must depend only on what is wanted last."""
