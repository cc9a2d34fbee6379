"""Scale scenarios: markers from watch events, floors measured in the same run, counted API writes."""
