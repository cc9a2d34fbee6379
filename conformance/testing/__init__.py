"""What the conformance tests of several profiles share. No profile imports another profile."""
