"""Scale runs: scenarios with phases, markers from watch events, floors of the same run, counted API requests."""
