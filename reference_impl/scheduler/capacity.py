"""Free capacity of nodes, in thousandths of a unit, with a journal for undoing attempts.

Pods with equal requests that are eligible for the same nodes share a *shape*. For each shape, the capacity stores the
number of additional pods that fit on each node (*slots*), and the sums of these slots over domains. Slots and sums are
updated from the log of changed nodes when they are read, so that the cost of a read depends on the number of changes
and not on the size of the cluster.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

from reference_impl.scheduler import eligibility
from reference_impl.scheduler.change_log import ChangeLog
from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.feasibility import refusal
from reference_impl.scheduler.guard import Guard, Terms, relations
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.ranking import Ranking
from reference_impl.scheduler.requests import Resources

Requests = tuple[tuple[str, int], ...]
_UNLIMITED = 1 << 60


class Capacity:
    """The nodes and their free capacity. Nodes are identified by their index in the order of their names."""

    def __init__(self, nodes: Iterable[Node], used: Mapping[str, Resources], state: ClusterState | None = None) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.metadata.name)
        self.index = {node.metadata.name: i for i, node in enumerate(self.nodes)}
        self.free = [_free_resources(node, used.get(node.metadata.name, {})) for node in self.nodes]
        self.log = ChangeLog()
        self.state = state or ClusterState()
        self.state.nodes = self.nodes
        self._related: dict[str, frozenset[object]] = {}
        self._terms = Terms(self.state)
        self._terms.add(term for pod, _ in self.state.placed for term in pod.anti_affinity_terms)
        self.state.neighbors = self._neighbors
        self._guards: dict[object, list[Guard]] = {}
        """The guards, indexed by the terms that relate their pods to other pods."""
        self._journal: list[tuple[int, Requests, int, Pod | None]] = []
        self._eligible: dict[bytes, list[int]] = {}
        self._shapes: dict[object, Shape] = {}
        self._domains: dict[str, dict[str, list[int]]] = {}
        self._values: dict[str, list[str]] = {}
        self._has_single_nodes: dict[str, bool] = {}
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._rankings: dict[tuple[int, str], Ranking] = {}
        self._amounts: dict[int, Requests] = {}

    def name(self, node: int) -> str:
        """Return the name of a node."""
        return self.nodes[node].metadata.name

    def register(self, pods: Iterable[Pod]) -> None:
        """Register the waiting pods before the first shape is built, because their terms may keep other pods off their
        nodes."""
        self._terms.add(term for pod in pods for term in pod.terms)
        self._related.clear()

    @property
    def keys(self) -> set[str]:
        """The topology keys of all affinity, anti-affinity and spread terms."""
        return self._terms.keys

    @cached_property
    def noticed_pods_by_node(self) -> Counter[str]:
        """The number of pods on each node that a filter may consider, by node name."""
        counts: Counter[str] = Counter()
        for pod, node in self.state.placed:
            counts[node.metadata.name] += self._is_noticed(pod)
        for index, _, count, placed in self._journal:
            if placed is not None:
                counts[self.name(index)] += self._is_noticed(placed) * count
        return +counts

    def _is_noticed(self, pod: Pod) -> bool:
        return pod.restricts_neighbors or bool(self._terms.profile(pod))

    def shape(self, pod: Pod) -> Shape:
        """Return the shape that a pod shares with all pods that have the same requests and placement rules."""
        profile = self._terms.profile(pod)
        requests = tuple(sorted(self.state.devices.node_requests(pod).items()))
        terms = tuple(term.identity for term in pod.terms)
        key = (pod.signature, self.state.devices.form(pod), requests, profile, terms)
        shape = self._shapes.get(key)
        if shape is None:
            guard = (
                Guard(pod, self.state, profile)
                if ((pod.restricts_neighbors or self.state.devices.has_claims(pod)) and not pod.decode_error) or profile
                else None
            )
            shape = self._shapes[key] = Shape(self, pod, requests, self._eligible_nodes(pod, guard), guard or None)
            if guard:
                _ = self.noticed_pods_by_node  # count the pods before the first change
                relations = self._relations(pod)
                for node, _, count, placed in self._journal:
                    if placed is not None and relations & self._relations(placed):
                        guard.update(placed, self.nodes[node], count)
                for relation in (*relations, id(pod)):
                    self._guards.setdefault(relation, []).append(guard)
        return shape

    def _relations(self, pod: Pod) -> frozenset[object]:
        related = self._related.get(pod.metadata.uid)
        if related is None:
            related = self._related[pod.metadata.uid] = relations(pod, self._terms.profile(pod))
        return related

    def _neighbors(self, pod: Pod) -> Iterable[tuple[Pod, Node]]:
        """Return the pods on nodes that are related to this pod, with their nodes."""
        pairs = (pair for relation in self._relations(pod) for pair in self._placed.get(relation, ()))
        return {id(pair): pair for pair in pairs}.values()

    @cached_property
    def _placed(self) -> dict[object, list[tuple[Pod, Node]]]:
        by_relation: dict[object, list[tuple[Pod, Node]]] = defaultdict(list)
        for pair in self.state.placed:
            for relation in self._relations(pair[0]):
                by_relation[relation].append(pair)
        return by_relation

    def domains(self, key: str) -> dict[str, list[int]]:
        """Return the nodes of each domain, by value of the node label `key`. Nodes without the label belong to no
        domain."""
        domains = self._domains.get(key)
        if domains is None:
            domains = defaultdict(list)
            for i in range(len(self.nodes)):
                if value := self.domain(key, i):
                    domains[value].append(i)
            self._domains[key] = domains = dict(domains)
        return domains

    def has_single_nodes(self, key: str) -> bool:
        """Return whether each domain of `key` consists of one node."""
        has_single_nodes = self._has_single_nodes.get(key)
        if has_single_nodes is None:
            has_single_nodes = self._has_single_nodes[key] = all(
                len(nodes) == 1 for nodes in self.domains(key).values()
            )
        return has_single_nodes

    def domain(self, key: str, node: int) -> str:
        """Return the domain of a node, or an empty string if the node lacks the label."""
        return self.values(key)[node]

    def values(self, key: str) -> list[str]:
        """Return the domain of each node; empty for a node without the label."""
        values = self._values.get(key)
        if values is None:
            values = self._values[key] = [node.metadata.label(key) for node in self.nodes]
        return values

    def tally(self, key: str, resource: str) -> Mapping[str, int]:
        """Return the free amount of a resource in each domain of `key`, summed over the domain's nodes."""
        tally = self._tallies.get((key, resource))
        if tally is None:
            tally = self._tallies[(key, resource)] = Tally(self, key, resource)
        return tally.sums

    def ranking(self, nodes: list[int], resource: str) -> Ranking:
        """Return a ranking of the nodes by their free amount of a resource. The list `nodes` must never change."""
        ranking = self._rankings.get((id(nodes), resource))
        if ranking is None:  # the ranking keeps a reference to the list, so its id stays unique
            ranking = self._rankings[(id(nodes), resource)] = Ranking(nodes, self.free, self.log, resource)
        return ranking

    def take(self, node: int, requests: Requests, count: int, pod: Pod | None = None) -> None:
        """Take the capacity of `count` pods like `pod`, or release it if `count` is negative."""
        free = self.free[node]
        for resource, amount in requests:
            free[resource] = free.get(resource, 0) - amount * count
        self._journal.append((node, requests, count, pod))
        self._touch(node)
        if pod is not None:
            self._update_filters(pod, node, count)

    def _touch(self, node: int) -> None:
        self.log.add(node)
        self._amounts.pop(node, None)

    def amounts(self, node: int) -> Requests:
        """Return the free amounts of a node in a form that is equal for nodes with equal amounts."""
        amounts = self._amounts.get(node)
        if amounts is None:
            amounts = self._amounts[node] = tuple(sorted(self.free[node].items()))
        return amounts

    def _update_filters(self, pod: Pod, node: int, count: int) -> None:
        """Tell the filters about pods that are placed, or removed if `count` is negative."""
        self.state.place(pod, self.nodes[node], count)
        if self._guards:
            noticed_pods_by_node, name = self.noticed_pods_by_node, self.name(node)
            noticed_pods_by_node[name] += self._is_noticed(pod) * count
            if noticed_pods_by_node[name] <= 0:
                del noticed_pods_by_node[name]
            related_guards = (
                guard for relation in (*self._relations(pod), id(pod)) for guard in self._guards.get(relation, ())
            )
            for guard in {id(guard): guard for guard in related_guards}.values():
                guard.update(pod, self.nodes[node], count)

    def release(self, pod: Pod, node: str) -> None:
        """Release the capacity of a pod, if its node still exists. To the filters, a pod that was placed in this cycle
        is represented by the first pod of its shape."""
        if (index := self.index.get(node)) is not None:
            bound = pod.spec.node_name or pod.metadata.uid in self.state.assumed_nodes
            self.take(index, tuple(pod.usage.items()), -1, pod if bound else self.shape(pod).pod)

    def mark(self) -> int:
        """Return a mark of the current state, for `undo`."""
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Undo everything that was taken or released since `mark`."""
        while len(self._journal) > mark:
            node, requests, count, pod = self._journal.pop()
            free = self.free[node]
            for resource, amount in requests:
                free[resource] += amount * count
            self._touch(node)
            if pod is not None:
                self._update_filters(pod, node, -count)

    def taken_since(self, mark: int) -> list[tuple[int, Requests, int]]:
        """Return the capacity that was taken since `mark`, as tuples of node, requests of one pod, and count."""
        return [(node, requests, count) for node, requests, count, _ in self._journal[mark:]]

    def ineligibility(self, pod: Pod) -> str:
        """Return a text that gives the number of nodes that each filter rejects for a pod, without regard to other
        pods."""
        static_filters = () if pod.decode_error else Guard(pod, self.state, frozenset()).static_filters
        return describe_refusals(
            Counter(eligibility.ineligibility(pod, n) or refusal(static_filters, n) for n in self.nodes)
        )

    def shared_domain(self, key: str, node: int) -> str:
        """Return the domain of a node if the domain has several nodes. Otherwise return "True" if the node has the
        label, and "False" if it does not."""
        value = self.domain(key, node)
        return value if value and len(self.domains(key)[value]) > 1 else str(bool(value))

    def _eligible_nodes(self, pod: Pod, guard: Guard | None) -> list[int]:
        """Return the nodes that are eligible for the pod, without regard to other pods."""
        if pod.decode_error:
            return []
        nodes = self._eligible.get(pod.node_signature)
        if nodes is None:
            nodes = [i for i, node in enumerate(self.nodes) if eligibility.eligible(pod, node)]
            self._eligible[pod.node_signature] = nodes
        if guard is None or not (pod.volumes or self.state.devices.has_claims(pod)):
            return nodes
        return [i for i in nodes if not refusal(guard.static_filters, self.nodes[i])]


class Shape:
    """The number of additional pods of one shape that fit on each node."""

    def __init__(
        self, capacity: Capacity, pod: Pod, requests: Requests, eligible: list[int], guard: Guard | None
    ) -> None:
        self.pod, self.requests, self.eligible, self.guard = pod, requests, eligible, guard
        self.scarce_resource = scarcest(dict(requests))
        """The resource that limits the placement of such pods."""
        self.size = (
            dict(requests).get(self.scarce_resource, 0) if "/" in self.scarce_resource else 0,
            dict(requests).get("cpu", 0),
        )
        self._capacity = capacity
        self._scarce_first = sorted(requests, key=lambda item: item[0] != self.scarce_resource)
        self._slots = capacity.ranking(eligible, self.scarce_resource).zeros.copy()
        self._by_slots: dict[int, dict[int, None]] = defaultdict(dict)
        """The nodes by their number of slots. Nodes without slots are omitted."""
        self._total = 0
        for slots, nodes in self._nodes_by_slots().items():
            self._by_slots[slots] = dict.fromkeys(sorted(nodes))
            self._slots.update(dict.fromkeys(nodes, slots))
            self._total += slots * len(nodes)
        self._sums: dict[str, dict[str, int]] = {}
        self._read_count = capacity.log.count

    @property
    def slots(self) -> dict[int, int]:
        """The number of additional pods that fit on each eligible node."""
        self._catch_up()
        return self._slots

    @property
    def total(self) -> int:
        """The total number of additional pods that fit on all eligible nodes."""
        self._catch_up()
        return self._total

    def sums(self, key: str) -> dict[str, int]:
        """Return the number of additional pods that fit in each domain of `key`. Domains in which none fit may be
        missing."""
        self._catch_up()
        sums = self._sums.get(key)
        if sums is None:
            sums = self._sums[key] = defaultdict(int)
            domain = self._capacity.values(key)
            for slots, nodes in self._by_slots.items():
                for i in nodes:
                    if value := domain[i]:
                        sums[value] += slots
        return sums

    def find_tightest_node(self) -> int | None:
        """Return the node with the fewest slots among the nodes that have slots, or None if no node has slots."""
        self._catch_up()
        fewest = min((slots for slots, nodes in self._by_slots.items() if nodes), default=0)
        return next(iter(self._by_slots[fewest])) if fewest else None

    def _nodes_by_slots(self) -> dict[int, list[int]]:
        """Return the nodes by number of slots. On most nodes, the scarce resource alone decides this number."""
        by_slots: dict[int, list[int]] = defaultdict(list)
        (scarce, amount), *remaining = self._scarce_first
        rankings = [(self._capacity.ranking(self.eligible, resource), n) for resource, n in remaining]
        short_nodes: set[int] = set()
        for slots, nodes in self._capacity.ranking(self.eligible, scarce).multiples(amount):
            for ranking, n in rankings:
                short_nodes.update(ranking.nodes_below(nodes, slots * n))
            by_slots[slots] += [i for i in nodes if i not in short_nodes] if short_nodes else nodes
        for i in short_nodes:
            if slots := self._count(i):
                by_slots[slots].append(i)
        return by_slots

    def shortages(self) -> Counter[str]:
        """Return, by resource, the number of eligible nodes that have too little of it for one pod."""
        return Counter({r: self._capacity.ranking(self.eligible, r).count_below(amount) for r, amount in self.requests})

    @cached_property
    def ineligibility(self) -> str:
        """The number of nodes that each filter rejects for such pods, without regard to other pods, as a text."""
        return self._capacity.ineligibility(self.pod)

    def _count(self, node: int) -> int:
        free = self._capacity.free[node]
        fewest = _UNLIMITED
        for resource, amount in self._scarce_first:  # a loop for speed: no function is called more often
            slots = free.get(resource, 0) // amount
            if slots < fewest:
                if slots <= 0:
                    return 0
                fewest = slots
        return fewest

    def _catch_up(self) -> None:
        log = self._capacity.log
        if self._read_count == log.count:
            return
        for i in log.changed_after(self._read_count):
            old = self._slots.get(i)
            if old is None or (new := self._count(i)) == old:
                continue
            self._slots[i] = new
            self._total += new - old
            if old:
                del self._by_slots[old][i]
            if new:
                self._by_slots[new][i] = None
            for key, sums in self._sums.items():
                if value := self._capacity.values(key)[i]:
                    sums[value] += new - old
        self._read_count = log.count


class Tally:
    """The free amount of one resource in each domain."""

    def __init__(self, capacity: Capacity, key: str, resource: str) -> None:
        self._capacity, self._key, self._resource = capacity, key, resource
        self._free_resources = [0] * len(capacity.nodes)
        self._sums: dict[str, int] = defaultdict(int)
        self._read_count = capacity.log.count
        self._refresh(range(len(capacity.nodes)))

    @property
    def sums(self) -> Mapping[str, int]:
        """The free amount of the resource in each domain."""
        log = self._capacity.log
        if self._read_count < log.count:
            self._refresh(log.changed_after(self._read_count))
            self._read_count = log.count
        return self._sums

    def _refresh(self, nodes: Iterable[int]) -> None:
        free, values = self._capacity.free, self._capacity.values(self._key)
        for i in nodes:
            free_amount = max(0, free[i].get(self._resource, 0))
            if free_amount != self._free_resources[i]:
                self._sums[values[i]] += free_amount - self._free_resources[i]
                self._free_resources[i] = free_amount


def describe_refusals(refusals: Counter[str]) -> str:
    """Return refusals with their counts, the most frequent first: `2 nodes NodePorts: …; 1 node …`."""
    parts = [f"{count} nodes {reason}" if count > 1 else f"1 node {reason}" for reason, count in refusals.most_common()]
    return "; ".join(parts) or "there are no nodes"


def scarcest(requests: Mapping[str, int]) -> str:
    """Return the first requested extended resource, or else CPU or memory, or `pods` if none of these is requested."""
    extended = sorted(name for name in requests if "/" in name)
    return extended[0] if extended else next((name for name in ("cpu", "memory") if name in requests), "pods")


def _free_resources(node: Node, used: Resources) -> Resources:
    free = dict(node.allocatable)
    for name, amount in used.items():
        free[name] = free.get(name, 0) - amount
    return free
