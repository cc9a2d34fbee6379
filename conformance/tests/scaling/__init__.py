"""Scale-out and scale-in at every level."""
