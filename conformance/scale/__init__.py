"""Scale runs: scenarios with phases, markers from watch events, floors measured in the same run, and counted API
requests."""
