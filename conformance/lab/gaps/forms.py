"""The forms in which a service is described to a scheduler: plain pods, PodGroups, trees of groups, or PodGangs. Pure
functions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from conformance.grove.scheduling import instance as oracle
from conformance.grove.scheduling.manifests import LABEL_KEYS
from conformance.lab.gaps.instances import GapInstance, ServiceComponent
from conformance.testing.workload_groups import Leaf, Root, Tree

PLAIN, GROUPS, TREES, PODGANGS, SETS = "plain", "groups", "trees", "podgangs", "sets"
"""The APIs with which a service can be described. `sets` are PodCliqueSets, from which an operator creates trees."""


@dataclass(frozen=True)
class Form:
    """One column of the table: the API, the scheduler (by its descriptor and parameters), the version of Kubernetes
    (empty for the default version) and the features of the cluster."""

    name: str
    title: str
    api: str
    implementation: str
    kubernetes: str = ""
    features: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    patience: float = 4.0
    """Seconds without a change after which the cluster counts as being at rest."""

    @property
    def cluster(self) -> tuple[Hashable, ...]:
        """Return the properties that determine the cluster. Forms with equal properties share a cluster."""
        return self.implementation, self.kubernetes, self.features, self.parameters


FORMS = (
    Form(PLAIN, "kube-scheduler, plain pods", PLAIN, "reference"),
    Form(GROUPS, "Workload API, flat (1.36)", GROUPS, "kube-scheduler", "1.36", ("workload-api",)),
    Form(TREES, "Workload API, hierarchical (1.37)", TREES, "kube-scheduler", "1.37", ("workload-api",)),
    Form(
        "operator",
        "the reference's operator on it (1.37)",
        SETS,
        "reference-workload-api",
        "1.37",
        ("workload-api",),
        patience=8.0,  # kube-scheduler retries only after some seconds, and the operator acts in between
    ),
    Form(PODGANGS, "the reference's gang scheduler", PODGANGS, "reference"),
)
KAI = Form("kai", "KAI", PODGANGS, "kai")
"""Used only if a descriptor with its programs is available: KAI is not a part of this project."""


def leaves(component: ServiceComponent, prefix: str = "", *, keys: bool = True) -> list[Leaf]:
    """Return a component's PodGroups: one for each replica, or a single one if the replicas are single pods."""
    name, key = f"{prefix}{component.name}", LABEL_KEYS["rack"] if component.rack and keys else ""
    if component.is_single_pod:
        return [Leaf(name, component.replicas, component.minimum, component.gpus, key)]
    return [Leaf(f"{name}-{i}", component.pods, component.pods, component.gpus, key) for i in range(component.replicas)]


def leaves_by_component(instance: GapInstance) -> Iterator[tuple[ServiceComponent, list[Leaf]]]:
    """Yield each component with its PodGroups. The alphabetical order of the PodGroups' names is the order of the
    components."""
    for order, component in zip("abcdefgh", instance.components, strict=False):
        yield component, leaves(component, f"{order}-")


def roots(form: Form, instance: GapInstance) -> list[Root]:
    """Return the groups and trees of an instance. For plain pods, return the groups that the instance would have."""
    if form.api != TREES:
        return [leaf for _, leaves in leaves_by_component(instance) for leaf in leaves]
    children: list[Root] = []
    for component, leaves in leaves_by_component(instance):
        if component.is_single_pod:
            children += leaves
        else:
            children.append(Tree(leaves[0].name.rpartition("-")[0], leaves, component.minimum))
    key = LABEL_KEYS["block"] if instance.block else ""
    only_root = children[0] if len(children) == 1 else None
    if isinstance(only_root, Tree):
        return [Tree(only_root.name, only_root.children, only_root.minimum, key)]
    return [Tree("root", children, len(children), key)]


def gangs(instance: GapInstance) -> tuple[oracle.Gang, ...]:
    """Return the PodGangs that Grove creates for an instance: the base gang with the required replicas, and a gang for
    each additional replica that has several pods."""
    base: list[oracle.Group] = []
    scaled: list[oracle.Gang] = []
    for component, leaves in leaves_by_component(instance):
        for index, leaf in enumerate(leaves):
            group = oracle.Group(leaf.name, leaf.minimum, leaf.pods, {"gpus": leaf.gpus}, "rack" if leaf.key else "")
            if component.is_single_pod or index < component.minimum:
                base.append(group)
            else:
                scaled.append(oracle.Gang(f"more-{leaf.name}", (group,), base="base"))
    return oracle.Gang("base", tuple(base), required="block" if instance.block else ""), *scaled


def bound_counts(instance: GapInstance, bound: Sequence[int]) -> dict[str, list[int]]:
    """Return the number of bound pods in each PodGroup by component. `bound` has the numbers of all PodGroups in
    order."""
    by_component, remaining = {}, list(bound)
    for component, leaves in leaves_by_component(instance):
        by_component[component.name] = [remaining.pop(0) for _ in leaves]
    return by_component
