"""Finds the packages of this distribution and starts its programs.

`conformance`, `kube` and `reference_impl` are common words: a project may have a folder with such a name, and other
distributions use these names. A wheel therefore keeps the packages in a separate folder, and our programs put that
folder first on `sys.path`. The name of this package is unique.
"""
