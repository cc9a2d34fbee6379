"""Randomly generated sets: valid sets, and mutations that may break rules."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from conformance.grove.admission.violation import AdmissionFacts, cliques, groups
from conformance.grove.kinds import PODCLIQUESETS

Set = dict[str, Any]
STARTUP_TYPES = ("CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit")
_NAMES = ("router", "prefill", "decode", "lead", "worker", "a")
_INVALID_NAMES = ("", "Aa", "-a", "a_b", "a b", "é", "x" * 46, "x" * 253)
_SIZES = (-1, 0, 1, 2, 3, 9)


def valid_set(random: Random, facts: AdmissionFacts, name: str = "generated") -> Set:
    """Return a random set that breaks no rule."""
    clique_names = random.sample(_NAMES, random.randint(1, 4))
    template: Set = {"cliques": [_clique(random, clique) for clique in clique_names]}
    if random.random() < 0.6:
        template["cliqueStartupType"] = random.choice(STARTUP_TYPES)
    if template.get("cliqueStartupType") == STARTUP_TYPES[2]:
        for i, clique in enumerate(template["cliques"][1:], 1):
            if random.random() < 0.6:
                clique["spec"]["startsAfter"] = random.sample(clique_names[:i], random.randint(1, min(i, 2)))
    if random.random() < 0.6:
        _add_groups(random, template)
    if random.random() < 0.3:
        template["terminationDelay"] = random.choice(["90m", "1h30m0s", "45s", "3600s", "4h", "1.5h"])
    if random.random() < 0.2:
        template["headlessServiceConfig"] = {"publishNotReadyAddresses": random.random() < 0.5}
    if random.random() < 0.3:
        _add_shared_claim(random, template)
    if facts.bindings and facts.topology and random.random() < 0.4:
        _constrain(random, template, facts)
    pcs: Set = {
        "apiVersion": PODCLIQUESETS.api_version,
        "kind": PODCLIQUESETS.kind,
        "metadata": {"name": name},
        "spec": {"template": template},
    }
    if random.random() < 0.3:
        pcs["spec"]["updateStrategy"] = random.choice([{}, {"type": "OnDelete"}, {"type": "RollingRecreate"}])
    return pcs


def mutated_set(random: Random, pcs: Set) -> Set:
    """Return a copy with one or two changes, which usually break a rule."""
    mutation: Set = copy.deepcopy(pcs)
    for change in random.sample(MUTATIONS, random.choice([1, 1, 1, 2])):
        if cliques(mutation):
            change(random, mutation)
    return mutation


def _clique(random: Random, name: str) -> Set:
    replicas = random.randint(1, 4)
    spec: Set = {
        "roleName": f"role-{name}",
        "replicas": replicas,
        "podSpec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    }
    if random.random() < 0.5:
        spec["minAvailable"] = random.randint(1, replicas)
    if random.random() < 0.2:
        spec["podSpec"]["restartPolicy"] = random.choice(["Always", "Never", "OnFailure"])
    if random.random() < 0.2:
        spec["podSpec"]["containers"][0]["env"] = [{"name": "MODEL_NAME", "value": "x"}]
    clique: Set = {"name": name, "spec": spec}
    if random.random() < 0.2:
        clique["labels"] = {"example.com/tier": "x"}
    return clique


def _add_groups(random: Random, template: Set) -> None:
    names = [clique["name"] for clique in template["cliques"]]
    members = random.sample(names, random.randint(1, len(names)))
    split_index = random.randint(0, len(members)) if len(members) > 1 else len(members)
    template["podCliqueScalingGroups"] = [
        _group(random, name, listed)
        for name, listed in (("g", members[:split_index]), ("h", members[split_index:]))
        if listed
    ]
    for clique in template["cliques"]:
        if clique["name"] not in members and random.random() < 0.3:
            clique["spec"]["autoScalingConfig"] = {"maxReplicas": clique["spec"]["replicas"] + random.randint(0, 3)}


def _group(random: Random, name: str, members: list[str]) -> Set:
    group: Set = {"name": name, "cliqueNames": members}
    replicas = random.randint(1, 4)
    if random.random() < 0.7:
        group["replicas"] = replicas
        group["minAvailable"] = random.randint(1, replicas)
        if random.random() < 0.4:
            group["scaleConfig"] = {"maxReplicas": replicas + random.randint(0, 3)}
    return group


def _add_shared_claim(random: Random, template: Set) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    template["resourceClaimTemplates"] = [
        {"name": "shared", "templateSpec": {"spec": {"devices": {"requests": [request]}}}}
    ]
    entry: Set = {"name": "shared", "scope": random.choice(["AllReplicas", "PerReplica"])}
    if random.random() < 0.5:
        entry["filter"] = {"childCliqueNames": [random.choice(template["cliques"])["name"]]}
    template["resourceSharing"] = [entry]


def _constrain(random: Random, template: Set, facts: AdmissionFacts) -> None:
    """Add a topology constraint to the set, and equal or narrower constraints to some of its parts."""
    name, levels = random.choice(sorted(facts.bindings.items()))
    level_index = random.randrange(len(levels))
    template["topologyConstraint"] = {"topologyName": name, "pack": {"required": levels[level_index]}}
    for entry in template.get("podCliqueScalingGroups", []):
        if random.random() < 0.5:
            entry["topologyConstraint"] = {"pack": {"required": levels[level_index]}}
    for entry in template["cliques"]:
        if random.random() < 0.4:
            entry["topologyConstraint"] = {"pack": {"required": random.choice(levels[level_index:])}}


# -- what may go wrong ---------------------------------------------------------------------


def _some_clique(random: Random, pcs: Set) -> Set:
    clique: Set = random.choice(pcs["spec"]["template"]["cliques"])
    return clique


def _some_group(random: Random, pcs: Set) -> Set | None:
    return random.choice(groups(pcs)) if groups(pcs) else None  # type: ignore[return-value]


def _remove_cliques(random: Random, pcs: Set) -> None:
    pcs["spec"]["template"]["cliques"] = []


def _rename_clique(random: Random, pcs: Set) -> None:
    _some_clique(random, pcs)["name"] = random.choice([*_INVALID_NAMES, *_NAMES, "other"])


def _repeat_role(random: Random, pcs: Set) -> None:
    _some_clique(random, pcs)["spec"]["roleName"] = _some_clique(random, pcs)["spec"].get("roleName", "")


def _drop_role(random: Random, pcs: Set) -> None:
    _some_clique(random, pcs)["spec"].pop("roleName", None)


def _resize_clique(random: Random, pcs: Set) -> None:
    _some_clique(random, pcs)["spec"][random.choice(["replicas", "minAvailable"])] = random.choice(_SIZES)


def _scale_clique(random: Random, pcs: Set) -> None:
    _some_clique(random, pcs)["spec"]["autoScalingConfig"] = {
        field: random.choice(_SIZES) for field in ("minReplicas", "maxReplicas") if random.random() < 0.7
    }


def _resize_group(random: Random, pcs: Set) -> None:
    if group := _some_group(random, pcs):
        group[random.choice(["replicas", "minAvailable"])] = random.choice(_SIZES)


def _change_scale_config(random: Random, pcs: Set) -> None:
    if group := _some_group(random, pcs):
        group["scaleConfig"] = {
            field: random.choice(_SIZES) for field in ("minReplicas", "maxReplicas") if random.random() < 0.7
        }


def _change_members(random: Random, pcs: Set) -> None:
    if group := _some_group(random, pcs):
        names = [*(clique["name"] for clique in cliques(pcs)), "ghost"]
        group["cliqueNames"] = [random.choice(names) for _ in range(random.randint(0, 3))]


def _rename_group(random: Random, pcs: Set) -> None:
    if group := _some_group(random, pcs):
        group["name"] = random.choice([*_INVALID_NAMES, "g", "h"])


def _add_or_remove_group(random: Random, pcs: Set) -> None:
    listed = pcs["spec"]["template"].setdefault("podCliqueScalingGroups", [])
    if listed and random.random() < 0.5:
        listed.pop()
    else:
        listed.append(_group(random, random.choice("gh"), []))


def _change_startup_type(random: Random, pcs: Set) -> None:
    pcs["spec"]["template"]["cliqueStartupType"] = random.choice(STARTUP_TYPES)


def _change_starts_after(random: Random, pcs: Set) -> None:
    names = [*(clique["name"] for clique in cliques(pcs)), "ghost", ""]
    clique = _some_clique(random, pcs)
    clique["spec"]["startsAfter"] = [random.choice(names) for _ in range(random.randint(1, 2))]
    if random.random() < 0.7:
        pcs["spec"]["template"]["cliqueStartupType"] = STARTUP_TYPES[2]


def _set_label_key(random: Random, pcs: Set) -> None:
    key = random.choice(["a", "example.com/a", "no spaces", "", "/a", "A/b", "a" * 64])
    _some_clique(random, pcs)[random.choice(["labels", "annotations"])] = {key: random.choice(["", "x", "y-1"])}


def _set_label_value(random: Random, pcs: Set) -> None:
    _some_clique(random, pcs)["labels"] = {"tier": random.choice(["x y", "v" * 64, "_", "fine"])}


def _set_variable_name(random: Random, pcs: Set) -> None:
    container = _some_clique(random, pcs)["spec"]["podSpec"]["containers"][0]
    container["env"] = [{"name": random.choice(["A=B", "", ".a", "FINE"]), "value": "x"}]


def _place_pods(random: Random, pcs: Set) -> None:
    pod = _some_clique(random, pcs)["spec"]["podSpec"]
    if random.random() < 0.5:
        pod["nodeName"] = "node-1"
    else:
        spread = {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}
        pod["topologySpreadConstraints"] = [spread]


def _change_scheduler(random: Random, pcs: Set) -> None:
    _some_clique(random, pcs)["spec"]["podSpec"]["schedulerName"] = "no-such-scheduler"


def _change_termination_delay(random: Random, pcs: Set) -> None:
    pcs["spec"]["template"]["terminationDelay"] = random.choice(["0s", "-1s", "abc", "5", "", "1h", "10s"])


def _change_replicas(random: Random, pcs: Set) -> None:
    pcs["spec"]["replicas"] = random.choice([-1, 0, 1, 3])


def _add_claim_template(random: Random, pcs: Set) -> None:
    spec: Set = random.choice([{}, {"devices": {"requests": []}}])
    entry: Set = {"name": random.choice(["", "shared", "mine"]), "templateSpec": {"spec": spec}}
    if random.random() < 0.5 and (listed := pcs["spec"]["template"].get("resourceClaimTemplates")):
        entry = copy.deepcopy(listed[0])
    pcs["spec"]["template"].setdefault("resourceClaimTemplates", []).append(entry)


def _add_resource_sharing(random: Random, pcs: Set) -> None:
    entry: Set = {"name": random.choice(["", "shared", "external"]), "scope": "PerReplica"}
    if random.random() < 0.4:
        entry["namespace"] = "elsewhere"
    template = pcs["spec"]["template"]
    holder = random.choice([template, _some_clique(random, pcs), _some_group(random, pcs) or template])
    if random.random() < 0.6 and holder not in cliques(pcs):
        names = [*(clique["name"] for clique in cliques(pcs)), "ghost"]
        entry["filter"] = random.choice([{}, {"childCliqueNames": [random.choice(names)]}])
    holder.setdefault("resourceSharing", []).append(entry)


def _add_topology_constraint(random: Random, pcs: Set) -> None:
    constraint: Set = {}
    if random.random() < 0.6:
        constraint["topologyName"] = random.choice(
            [c["topologyName"] for c in _constraints(pcs) if c.get("topologyName")] or ["nowhere"]
        )
    if random.random() < 0.9:
        domains = ["zone", "rack", "host", "elsewhere"]
        constraint["pack"] = {
            field: random.choice(domains) for field in ("required", "preferred") if random.random() < 0.6
        }
    template = pcs["spec"]["template"]
    holder = random.choice([template, _some_clique(random, pcs), _some_group(random, pcs) or template])
    holder["topologyConstraint"] = constraint


def _constraints(pcs: Set) -> list[Set]:
    holders = [pcs["spec"]["template"], *cliques(pcs), *groups(pcs)]
    return [holder["topologyConstraint"] for holder in holders if holder.get("topologyConstraint")]


def _add_mnnvl_group(random: Random, pcs: Set) -> None:
    holder = random.choice([pcs["metadata"], _some_clique(random, pcs), _some_group(random, pcs) or pcs["metadata"]])
    value = random.choice(["none", "nv1", "", "Bad_", "a" * 64])
    holder["annotations"] = {**holder.get("annotations", {}), "grove.io/mnnvl-group": value}


def _change_image(random: Random, pcs: Set) -> None:
    _some_clique(random, pcs)["spec"]["podSpec"]["containers"][0]["image"] = "registry.example/app:2"


def _shuffle_cliques(random: Random, pcs: Set) -> None:
    random.shuffle(pcs["spec"]["template"]["cliques"])


def _drop_clique(random: Random, pcs: Set) -> None:
    pcs["spec"]["template"]["cliques"].pop(random.randrange(len(cliques(pcs))))


def _add_clique(random: Random, pcs: Set) -> None:
    pcs["spec"]["template"]["cliques"].append(_clique(random, random.choice([*_NAMES, "new"])))


def _long_set_name(random: Random, pcs: Set) -> None:
    pcs["metadata"]["name"] = random.choice(["s" * n for n in (20, 38, 44, 45, 63, 253)])


MUTATIONS: list[Callable[[Random, Set], None]] = [
    _remove_cliques,
    _rename_clique,
    _repeat_role,
    _drop_role,
    _resize_clique,
    _scale_clique,
    _resize_group,
    _change_scale_config,
    _change_members,
    _rename_group,
    _add_or_remove_group,
    _change_startup_type,
    _change_starts_after,
    _set_label_key,
    _set_label_value,
    _set_variable_name,
    _place_pods,
    _change_scheduler,
    _change_termination_delay,
    _change_replicas,
    _add_claim_template,
    _add_resource_sharing,
    _add_topology_constraint,
    _add_mnnvl_group,
    _change_image,
    _shuffle_cliques,
    _drop_clique,
    _add_clique,
    _long_set_name,
]
