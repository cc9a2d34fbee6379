"""How the packages of this distribution are found, and its programs started.

`conformance`, `kube` and `reference_impl` are common words: a project may have a folder of such a name, and other
distributions do. So a wheel keeps them in a folder of their own, and what we start prefers them to whatever else is on
its path. The name of this package is unique.
"""
