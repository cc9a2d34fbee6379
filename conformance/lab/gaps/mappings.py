"""Ways to map the gangs of one service to the Workload API, and when the service's extra pod joins (WL37, section
7)."""

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

FLOOR_PODS = 6
"""Number of required pods: a router, a prefill replica of three pods, and a decode replica of two pods."""
GPU_COUNTS = range(5, 13)
"""Numbers of GPUs, from one too few for the floor to enough for all pods."""
SAMPLE_GPU_COUNTS = (5, 6, 7, 9, 12)
ROUTER = Leaf("a-router", 2, 1)
REPLICAS = {
    "p0": [Leaf("b-p0-l", 1, 1), Leaf("b-p0-w", 2, 2)],
    "d0": [Leaf("c-d0-l", 1, 1), Leaf("c-d0-w", 1, 1)],
    "p1": [Leaf("d-p1-l", 1, 1), Leaf("d-p1-w", 2, 2)],
    "d1": [Leaf("e-d1-l", 1, 1), Leaf("e-d1-w", 1, 1)],
}
BASE_REPLICAS, SCALED_REPLICAS = ("p0", "d0"), ("p1", "d1")


@dataclass(frozen=True)
class Mapping:
    """One row of the table: how gangs become groups, and how the router's second pod joins a group."""

    row: str
    shape: str
    """`flat`: a PodGroup for each clique; `collapsed`: a PodGroup for each gang; `h1`: a tree for each gang; `h2`: one
    tree."""
    extra: str
    """`free`: created with the other pods; `gated`: created in its group, but with a gate until the floor is bound;
    `plain`: as `gated`, but in no group; `late`: created once the floor is bound; `operator`: created by the
    reference's operator."""
    forms: tuple[str, ...]
    sizes: Sequence[int] = SAMPLE_GPU_COUNTS

    @property
    def key(self) -> str:
        """Return the identity of a mapping. A row can have several mappings."""
        return f"{self.row.rpartition('-')[2].lower()}-{self.extra}"


MAPPINGS = (
    Mapping("WL37-M01", "flat", "free", (GROUPS, TREES)),
    Mapping("WL37-M02", "flat", "gated", (GROUPS, TREES)),
    Mapping("WL37-M03", "collapsed", "free", (GROUPS, TREES)),
    Mapping("WL37-M04", "collapsed", "gated", (GROUPS, TREES)),
    Mapping("WL37-M05", "collapsed", "late", (GROUPS, TREES)),
    Mapping("WL37-M06", "h1", "free", (TREES,), GPU_COUNTS),
    Mapping("WL37-M07", "h1", "gated", (TREES,)),
    Mapping("WL37-M08", "h1", "late", (TREES,), GPU_COUNTS),
    Mapping("WL37-M08", "h1", "operator", ("operator",), GPU_COUNTS),
    Mapping("WL37-M09", "h2", "free", (TREES,)),
    Mapping("WL37-M10", "h2", "gated", (TREES,)),
    Mapping("WL37-M10", "h2", "plain", (TREES,)),
    Mapping("WL37-M10", "h2", "late", (TREES,)),
)


def gangs(shape: str) -> tuple[list[Root], list[Root]]:
    """Return the groups of the base gang, and the groups of the scaled gangs."""
    leaves = {name: Tree(name, pods, 2) for name, pods in REPLICAS.items()}
    match shape:
        case "flat":
            base_leaves = [leaf for name in BASE_REPLICAS for leaf in REPLICAS[name]]
            return [ROUTER, *base_leaves], [leaf for name in SCALED_REPLICAS for leaf in REPLICAS[name]]
        case "collapsed":
            return [Leaf("base", FLOOR_PODS + 1, FLOOR_PODS)], [Leaf("p1", 3, 3), Leaf("d1", 2, 2)]
        case "h1":
            return [Tree("base", [ROUTER, *(leaves[name] for name in BASE_REPLICAS)], 3)], [
                leaves[name] for name in SCALED_REPLICAS
            ]
        case _:
            prefill = Tree("prefill", [leaves["p0"], leaves["p1"]], 1)
            decode = Tree("decode", [leaves["d0"], leaves["d1"]], 1)
            return [Tree("base", [ROUTER, prefill, decode], 3)], []


def describe(bound: dict[str, int]) -> str:
    """Return in words which parts are bound: `0`, `part`, `F` (the floor) with `+r`, `+p`, `+d`, or `all`. `bound` maps
    a part to its number of bound pods."""
    full_counts = {"router": 2, **{name: sum(leaf.pods for leaf in leaves) for name, leaves in REPLICAS.items()}}
    if bound == full_counts:
        return "all"
    if not any(bound.values()):
        return "0"
    if not bound["router"] or any(bound[name] < full_counts[name] for name in BASE_REPLICAS):
        return "part"
    optional_parts = {
        "+r": bound["router"] == 2,
        "+p": bound["p1"] == full_counts["p1"],
        "+d": bound["d1"] == full_counts["d1"],
    }
    return "F" + "".join(mark for mark, is_bound in optional_parts.items() if is_bound)


def is_right_outcome(nodes: int, outcome: str) -> bool:
    """Return whether an outcome is right: the floor is bound if it fits, and otherwise nothing is bound."""
    return outcome.startswith("F") or outcome == "all" if nodes >= FLOOR_PODS else outcome == "0"


def depends_on_luck(form: Form, mapping: Mapping, gpus: int) -> bool:
    """Return whether an outcome depends on an order that is not guaranteed, so that it may differ from run to run. This
    is possible if there is room for the minimum but not for all pods.

    1.36 tries the pods of a PodGroup in any order (WL-B04). 1.37 tries them by creation time (WL37-B03), but that does
    not order replicas of one tree that were created in the same second (WL37-M10).
    """
    if not FLOOR_PODS <= gpus < GPU_COUNTS[-1] or mapping.extra == "gated":
        return False
    if mapping.shape == "h2":
        return True
    is_free = mapping.extra == "free"
    return is_free and (form.api == GROUPS or (mapping.shape == "collapsed" and gpus == FLOOR_PODS))


class MappingRun:
    """One run of a mapping on a number of GPUs."""

    def __init__(self, env: SceneEnvironment, form: Form, mapping: Mapping, gpus: int, run: int = 1) -> None:
        self.mapping, self.gpus, self.run = mapping, gpus, run
        self.bench = Bench(env, f"{form.name[0]}{run}-{mapping.key}-on-{gpus}", trees=form.api != GROUPS)
        self._env = env
        self.floor, self.scaled, self.extra = self._pods()
        self._later_stages, self.gated = self._stages(), list[str]()

    def nodes(self) -> list[Object]:
        """Return the nodes: one for each GPU, since every pod requests one GPU."""
        return self.bench.node_manifests(self.gpus)

    def create(self) -> None:
        """Do nothing: there are only groups and pods."""

    def groups(self) -> list[Object]:
        """Return the groups in the order in which they are to be created."""
        base, scaled = gangs(self.mapping.shape)
        return [group for root in (*base, *scaled) for group in workload_groups.groups(root, self.bench.target)]

    def pods(self) -> list[Object]:
        """Return the pods in the order in which they are to be created, each with a gate."""
        extra_pods = [] if self.mapping.extra == "late" else [self.extra]
        ungated_first = [*self.floor, *(extra_pods if self.mapping.extra == "free" else [])]
        self.gated = _names([*ungated_first, *(self.scaled if self.mapping.shape == "h2" else [])])
        return [*self.floor, *extra_pods, *self.scaled]

    def take_pods_to_ungate(self, view: View) -> Sequence[str]:
        """Return the pods whose gates are to be removed now, each pod only once. The extra pod and the scaled gangs
        follow once the floor is bound, as with an operator, and one after the other, so that the outcome does not
        depend on timing."""
        if not self._later_stages or not is_right_outcome(FLOOR_PODS, self.outcome(view)):
            return ()
        if self.mapping.extra == "late" and self._later_stages[0] == _names([self.extra]):
            self._env.create(self.extra)
        return self._later_stages.pop(0)

    def _stages(self) -> list[list[str]]:
        """Return the groups of pods that follow once the floor is bound, in order."""
        stages = [] if self.mapping.extra == "free" else [_names([self.extra])]
        if self.mapping.shape != "h2":
            first_size = sum(leaf.pods for leaf in REPLICAS[SCALED_REPLICAS[0]])
            stages += [_names(self.scaled[:first_size]), _names(self.scaled[first_size:])]
        return stages

    def witness(self, pod: str) -> None:
        """Show that the scheduler has had its chance; see `Bench.witness`."""
        self.bench.bind_witness(pod)

    def outcome(self, view: View) -> str:
        """Return in words which parts are bound."""
        bound_counts = dict.fromkeys(("router", *REPLICAS), 0)
        for pod in (*self.floor, self.extra, *self.scaled):
            stored_pod = view.get("pods", pod["metadata"]["name"])
            part = pod["metadata"]["name"].removeprefix(f"{self.bench.name}-").split("-")[1]
            bound_counts[part] += stored_pod is not None and pod_fields.is_bound(stored_pod)
        return describe(bound_counts)

    def _pods(self) -> tuple[list[Object], list[Object], Object]:
        """Return the pods of the floor, the pods of the scaled gangs, and the router's second pod."""
        router = workload_groups.pods(ROUTER, self.bench.target, gated=True)
        pods_of_replicas = {
            name: [pod for leaf in leaves for pod in workload_groups.pods(leaf, self.bench.target, gated=True)]
            for name, leaves in REPLICAS.items()
        }
        floor = [router[0], *pods_of_replicas["p0"], *pods_of_replicas["d0"]]
        if self.mapping.shape == "collapsed":
            for pods, group in (
                ([*floor, router[1]], "base"),
                (pods_of_replicas["p1"], "p1"),
                (pods_of_replicas["d1"], "d1"),
            ):
                for pod in pods:
                    pod["spec"]["schedulingGroup"] = {"podGroupName": self.bench.target.name(group)}
        if self.mapping.extra == "plain":
            del router[1]["spec"]["schedulingGroup"]
        return floor, [*pods_of_replicas["p1"], *pods_of_replicas["d1"]], router[1]


def _names(pods: Sequence[Object]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]
