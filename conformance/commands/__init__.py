"""The commands of `grove-conformance`: each module parses, calls and prints."""
