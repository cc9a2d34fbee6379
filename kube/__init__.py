"""Kubernetes machinery that both packages use: client, informer cache, work queue. It knows no Grove names and imports
neither `conformance` nor `reference_impl`."""
