"""Required and preferred topology domains, both for a gang scheduler alone and from a set down to the racks of its
pods."""
