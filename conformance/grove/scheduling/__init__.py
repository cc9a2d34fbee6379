"""The oracle of gang scheduling: which placements the contract permits, found by brute force (spec part E).

The package contains small instances (nodes, running pods, gangs) as data, the rules that judge an outcome, and the
enumeration of all permitted outcomes. It does not access a cluster, and shares no code with any scheduler.

- `instance`   instances and outcomes
- `scenarios`  instances as YAML: `fixtures/scheduling/`, and printed counterexamples
- `admits`     whether a node admits a pod at all
- `search`     brute force over the distributions of pods
- `rules`      `verdict(instance, outcome)`: the breaches of an outcome at rest
- `history`    rules for each step, then the verdict on the end
- `outcomes`   `permitted(instance)`: all outcomes without a breach
- `strategies` generated instances (hypothesis)
"""
