"""Required and preferred topology domains, both for a gang scheduler alone and for whole sets down to the racks of
their pods."""
