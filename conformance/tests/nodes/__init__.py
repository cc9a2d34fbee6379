"""Nodes that take their pods away: a node is cordoned, drained, lost, and comes back."""
