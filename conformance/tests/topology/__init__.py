"""Required and preferred domains: of a gang scheduler alone, and from a set down to the racks of its pods."""
