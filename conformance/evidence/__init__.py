"""Evidence of what went wrong in a test: texts and pictures made from its recorded history."""
