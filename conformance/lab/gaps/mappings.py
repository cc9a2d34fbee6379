"""Ways to map the gangs of one service to the Workload API, and when its extra pod joins (WL37, section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.grove import pods as pod_fields
from conformance.history.view import View
from conformance.lab.gaps.forms import GROUPS, TREES, Form
from conformance.suite.scenes.api import Object
from conformance.testing import workload_groups
from conformance.testing.benches import Bench
from conformance.testing.scene import SceneEnvironment
from conformance.testing.workload_groups import Leaf, Root, Tree

FLOOR = 6
"""Pods of the minimum: a router, a prefill replica of three pods, a decode replica of two."""
SIZES = range(5, 13)
"""Numbers of GPUs: from one that is too small for the floor to one that holds all."""
SOME = (5, 6, 7, 9, 12)
ROUTER = Leaf("a-router", 2, 1)
REPLICAS = {
    "p0": [Leaf("b-p0-l", 1, 1), Leaf("b-p0-w", 2, 2)],
    "d0": [Leaf("c-d0-l", 1, 1), Leaf("c-d0-w", 1, 1)],
    "p1": [Leaf("d-p1-l", 1, 1), Leaf("d-p1-w", 2, 2)],
    "d1": [Leaf("e-d1-l", 1, 1), Leaf("e-d1-w", 1, 1)],
}
BASE, SCALED = ("p0", "d0"), ("p1", "d1")


@dataclass(frozen=True)
class Mapping:
    """One row: how gangs become groups, and how the router's second pod does."""

    row: str
    shape: str
    """`flat`: a PodGroup for each clique; `collapsed`: one for each gang; `h1`: a tree for each; `h2`: one tree."""
    extra: str
    """`free`: created with the other pods; `gated` in its group, `plain` gated in no group, `late` created: once the
    floor is bound; `operator`: created by the reference's operator."""
    forms: tuple[str, ...]
    sizes: Sequence[int] = SOME

    @property
    def key(self) -> str:
        """Return the identity of a mapping: some rows have several mappings."""
        return f"{self.row.rpartition('-')[2].lower()}-{self.extra}"


MAPPINGS = (
    Mapping("WL37-M01", "flat", "free", (GROUPS, TREES)),
    Mapping("WL37-M02", "flat", "gated", (GROUPS, TREES)),
    Mapping("WL37-M03", "collapsed", "free", (GROUPS, TREES)),
    Mapping("WL37-M04", "collapsed", "gated", (GROUPS, TREES)),
    Mapping("WL37-M05", "collapsed", "late", (GROUPS, TREES)),
    Mapping("WL37-M06", "h1", "free", (TREES,), SIZES),
    Mapping("WL37-M07", "h1", "gated", (TREES,)),
    Mapping("WL37-M08", "h1", "late", (TREES,), SIZES),
    Mapping("WL37-M08", "h1", "operator", ("operator",), SIZES),
    Mapping("WL37-M09", "h2", "free", (TREES,)),
    Mapping("WL37-M10", "h2", "gated", (TREES,)),
    Mapping("WL37-M10", "h2", "plain", (TREES,)),
    Mapping("WL37-M10", "h2", "late", (TREES,)),
)


def gangs(shape: str) -> tuple[list[Root], list[Root]]:
    """Return the groups of the base gang, and those of the scaled gangs."""
    leaves = {name: Tree(name, pods, 2) for name, pods in REPLICAS.items()}
    match shape:
        case "flat":
            of = [leaf for name in BASE for leaf in REPLICAS[name]]
            return [ROUTER, *of], [leaf for name in SCALED for leaf in REPLICAS[name]]
        case "collapsed":
            return [Leaf("base", FLOOR + 1, FLOOR)], [Leaf("p1", 3, 3), Leaf("d1", 2, 2)]
        case "h1":
            return [Tree("base", [ROUTER, *(leaves[name] for name in BASE)], 3)], [leaves[name] for name in SCALED]
        case _:
            prefill = Tree("prefill", [leaves["p0"], leaves["p1"]], 1)
            decode = Tree("decode", [leaves["d0"], leaves["d1"]], 1)
            return [Tree("base", [ROUTER, prefill, decode], 3)], []


def describe(bound: dict[str, int]) -> str:
    """Return the bound parts in words: `0`, `part`, `F` with `+r`, `+p`, `+d`, or `all`. `bound`: part → pods."""
    full = {"router": 2, **{name: sum(leaf.pods for leaf in leaves) for name, leaves in REPLICAS.items()}}
    if bound == full:
        return "all"
    if not any(bound.values()):
        return "0"
    if not bound["router"] or any(bound[name] < full[name] for name in BASE):
        return "part"
    optional_parts = {"+r": bound["router"] == 2, "+p": bound["p1"] == full["p1"], "+d": bound["d1"] == full["d1"]}
    return "F" + "".join(word for word, is_bound in optional_parts.items() if is_bound)


def right(nodes: int, outcome: str) -> bool:
    """Return whether an outcome is as it must be: the floor if it fits, else nothing."""
    return outcome.startswith("F") or outcome == "all" if nodes >= FLOOR else outcome == "0"


def luck(form: Form, mapping: Mapping, gpus: int) -> bool:
    """Return whether an outcome depends on an order that is not guaranteed, so that it may differ from run to run.

    That can be so where there is room for the minimum and not for all.

    1.36 tries the pods of a PodGroup in any order (WL-B04). 1.37 tries them by creation time (WL37-B03), which does not
    order replicas of one tree that were created in the same second (WL37-M10).
    """
    if not FLOOR <= gpus < SIZES[-1] or mapping.extra == "gated":
        return False
    if mapping.shape == "h2":
        return True
    free = mapping.extra == "free"
    return free and (form.api == GROUPS or (mapping.shape == "collapsed" and gpus == FLOOR))


class MappingPlay:
    """One mapping on a number of GPUs while it is played."""

    def __init__(self, env: SceneEnvironment, form: Form, mapping: Mapping, gpus: int, run: int = 1) -> None:
        self.mapping, self.gpus, self.run = mapping, gpus, run
        self.bench = Bench(env, f"{form.name[0]}{run}-{mapping.key}-on-{gpus}", trees=form.api != GROUPS)
        self._env = env
        self.floor, self.scaled, self.extra = self._pods()
        self._later, self.gated = self._stages(), list[str]()

    def nodes(self) -> list[Object]:
        """Return the nodes: one, since every pod wants one GPU."""
        return self.bench.node_manifests(self.gpus)

    def create(self) -> None:
        """Create nothing: there are groups and pods only."""

    def groups(self) -> list[Object]:
        """Return the groups in the order of their creation."""
        base, scaled = gangs(self.mapping.shape)
        return [group for root in (*base, *scaled) for group in workload_groups.groups(root, self.bench.place)]

    def pods(self) -> list[Object]:
        """Return the pods in the order of their creation, with a gate on each."""
        extra = [] if self.mapping.extra == "late" else [self.extra]
        now = [*self.floor, *(extra if self.mapping.extra == "free" else [])]
        self.gated = _names([*now, *(self.scaled if self.mapping.shape == "h2" else [])])
        return [*self.floor, *extra, *self.scaled]

    def release(self, view: View) -> Sequence[str]:
        """Return the pods that lose their gates now. The extra pod and the scaled gangs follow once the floor is bound,
        as with an operator, and one after the other, so that nothing depends on timing."""
        if not self._later or not right(FLOOR, self.outcome(view)):
            return ()
        if self.mapping.extra == "late" and self._later[0] == _names([self.extra]):
            self._env.create(self.extra)
        return self._later.pop(0)

    def _stages(self) -> list[list[str]]:
        """Return the pods that follow once the floor is bound, in order."""
        stages = [] if self.mapping.extra == "free" else [_names([self.extra])]
        if self.mapping.shape != "h2":
            first = sum(leaf.pods for leaf in REPLICAS[SCALED[0]])
            stages += [_names(self.scaled[:first]), _names(self.scaled[first:])]
        return stages

    def witness(self, pod: str) -> None:
        """Show that the scheduler had its chance, as `Bench.witness`."""
        self.bench.witness(pod)

    def outcome(self, view: View) -> str:
        """Return the parts that are bound, in words."""
        parts = dict.fromkeys(("router", *REPLICAS), 0)
        for pod in (*self.floor, self.extra, *self.scaled):
            current = view.get("pods", pod["metadata"]["name"])
            part = pod["metadata"]["name"].removeprefix(f"{self.bench.name}-").split("-")[1]
            parts[part] += current is not None and pod_fields.bound(current)
        return describe(parts)

    def _pods(self) -> tuple[list[Object], list[Object], Object]:
        """Return the pods of the floor, those of the scaled gangs, and the router's second pod."""
        router = workload_groups.pods(ROUTER, self.bench.place, gated=True)
        parts = {
            name: [pod for leaf in leaves for pod in workload_groups.pods(leaf, self.bench.place, gated=True)]
            for name, leaves in REPLICAS.items()
        }
        floor = [router[0], *parts["p0"], *parts["d0"]]
        if self.mapping.shape == "collapsed":
            for pods, group in (([*floor, router[1]], "base"), (parts["p1"], "p1"), (parts["d1"], "d1")):
                for pod in pods:
                    pod["spec"]["schedulingGroup"] = {"podGroupName": self.bench.place.name(group)}
        if self.mapping.extra == "plain":
            del router[1]["spec"]["schedulingGroup"]
        return floor, [*parts["p1"], *parts["d1"]], router[1]


def _names(pods: Sequence[Object]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]
