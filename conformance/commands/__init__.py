"""The commands of `grove-conformance`: each module parses the arguments, calls the suite and prints the result."""
