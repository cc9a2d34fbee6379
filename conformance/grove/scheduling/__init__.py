"""The oracle of gang scheduling: which placements the contract permits, found by brute force (spec part E).

Here live small instances (nodes, running pods, gangs) as data, the rules that an outcome is judged by, and the
enumeration of all permitted outcomes. Nothing here looks at a cluster, and nothing is shared with any scheduler.

- `instance`   what an instance and an outcome are
- `scenarios`  instances as YAML: `fixtures/scheduling/`, and how a counterexample is printed
- `admits`     whether a node may take a pod at all
- `search`     brute force over the distributions of pods
- `rules`      `verdict(instance, outcome)`: the breaches of an outcome at rest
- `history`    what must hold at each moment, and the verdict on the end
- `outcomes`   `permitted(instance)`: all outcomes without a breach
- `strategies` generated instances (hypothesis)
"""
