"""Loss of pods with their nodes: a node is cordoned, drained, lost, and comes back."""
