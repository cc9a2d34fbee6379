"""Scale scenarios: markers from watch events, raw floors measured in the same run, counted API writes."""
