"""Template hashes. A change without an effect does not change a hash or restart a pod. A change with an effect does
both."""
