"""Nodes that take pods away: cordoned, drained, lost, and back."""
