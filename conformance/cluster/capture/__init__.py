"""`cluster capture`: a fleet file from a running cluster, which is only read. `lists` reads, everything else is pure:
`fleet` makes the file of what was listed, of `shapes` of nodes with their `devices`, without names (`pseudonyms`)."""
