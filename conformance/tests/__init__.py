"""The conformance tests, a folder a profile. They use suite, history and grove, never the cluster's insides."""
