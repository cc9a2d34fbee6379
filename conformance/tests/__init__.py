"""The conformance tests, one folder per profile. They use the packages suite, history and grove, but never the package
cluster."""
