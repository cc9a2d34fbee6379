"""A simulated operator, scheduler and kubelet that follow a trace, with injected faults, and record a history to
judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance.grove import labels
from conformance.grove.coherent import shapes
from conformance.grove.coherent.model import Component, Entry, Key, Layout
from conformance.grove.coherent.traces import Trace
from tests.history.scripted import Scripted
from tests.history.story import Story

SET = "s"
HASH = "podCliqueSetGenerationHash"


Fault = Callable[["TraceSimulation"], object]


class TraceSimulation:
    """A simulation of one or more replicas of the set `s`. Each scaling group has one clique with one pod. The clique's
    name is the name of the group in lower case."""

    def __init__(
        self,
        trace: Trace,
        faults: Sequence[str] = (),
        replicas: int = 1,
        faults_by_write: Mapping[int, Fault] | None = None,
        owners: bool = False,
        budgets: bool = True,
    ) -> None:
        """`faults_by_write` maps the number of a write of the last replica to the fault that follows the write. With
        `owners`, each pod's controller is the clique that exists when the pod is created. With `budgets`, the templates
        have maxUnavailable."""
        self.log = Scripted()
        self.story, self.trace, self.faults, self.replicas = Story(self.log), trace, set(faults), replicas
        self.strategy, self.unready_generations = "Coherent", frozenset[str]()
        self._owners, self._budgets = owners, budgets
        self.index, self._faults_by_write = 0, dict(faults_by_write or {})
        self.before_updates: Fault | None = None
        """The fault to inject after the set is deployed."""
        self.layout: dict[int, Layout] = {}
        self.running, self.generation, self.turns = False, "v0", [0]
        self._pods: dict[str, dict[str, Any]] = {}
        self._created_pod_count = 0
        self._served_gangs: set[str] = set()

    def run(self) -> TraceSimulation:
        """Follow the whole trace, starting with the creation of the set."""
        for index in range(self.replicas):
            self.index = index
            self._create_children()
            self.write(self.trace.writes[0].layout)
        if self.before_updates is not None:
            self.before_updates(self)
        for index in range(self.replicas):
            self.index = index
            for number, write in enumerate(self.trace.writes[1:], 1):
                if write.start_generation:
                    self.start_update(write.start_generation)
                self.write(write.layout)
                if number in self._faults_by_write and index == self.replicas - 1:
                    self._faults_by_write[number](self)
        self.end_update()
        return self

    # -- the set ---------------------------------------------------------------------------------------------------

    def record_set(self, **status: Any) -> None:
        def budget(c: Component) -> dict[str, Any]:
            return {"rollingUpdate": {"maxUnavailable": c.unavailable}} if self._budgets else {}

        cliques = [
            {"name": c.key.name, "spec": {"replicas": c.replicas, "minAvailable": c.minimum}, **budget(c)}
            for c in self.trace.components if c.key.kind == "clique"
        ]  # fmt: skip
        groups = [c for c in self.trace.components if c.key.kind == "group"]
        cliques += [{"name": c.key.name.lower(), "spec": {"replicas": 1, "minAvailable": 1}} for c in groups]
        group_templates = [
            {"name": c.key.name, "cliqueNames": [c.key.name.lower()], "replicas": c.replicas,
             "minAvailable": c.minimum, **budget(c)} for c in groups
        ]  # fmt: skip
        template = {"cliques": cliques, "podCliqueScalingGroups": group_templates}
        spec = {"replicas": self.replicas, "updateStrategy": {"type": self.strategy}, "template": template}
        status = {"currentGenerationHash": self.generation, **status}
        self.story.record("podcliquesets", SET, {"spec": spec, "status": status})

    def start_update(self, generation: str) -> None:
        self.generation, self.running = generation, True
        self.record_set(updateProgress=self._progress())

    def end_update(self) -> None:
        self.running = False
        self.record_set(
            updateProgress={**self._progress(), "updateEndedAt": "2026-01-01T00:01:00Z", "currentlyUpdating": []}
        )
        self.log.clock = self.story.at + 10

    def _progress(self) -> dict[str, Any]:
        scope = self.trace.changed
        return {
            "updateStartedAt": "2026-01-01T00:00:00Z",
            "currentlyUpdating": [{"replicaIndex": self.index}],
            "updatedStandalonePodCliques": [key.name for key in scope if key.kind == "clique"],
            "updatedPodCliqueScalingGroups": [key.name for key in scope if key.kind == "group"],
        }

    def _create_children(self) -> None:
        if self.index == 0:
            self.record_set()
        for component in self.trace.components:
            plural = "podcliques" if component.key.kind == "clique" else "podcliquescalinggroups"
            spec = {"replicas": component.replicas, "minAvailable": component.minimum}
            name = f"{SET}-{self.index}-{component.key.name}"
            self._record(plural, name, spec)
            for replica_index in range(component.replicas if component.key.kind == "group" else 0):
                tags = {labels.GROUP: name, labels.GROUP_INDEX: str(replica_index)}
                self._record(
                    "podcliques", f"{name}-{replica_index}-{component.key.name.lower()}", {"replicas": 1}, tags
                )

    def scale(self, clique: str, replicas: int) -> None:
        """Scale a standalone clique."""
        self._record("podcliques", f"{SET}-{self.index}-{clique}", {"replicas": replicas, "minAvailable": 1})

    def _record(self, resource: str, name: str, spec: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> None:
        self.story.record(
            resource, name, {"metadata": {"labels": {**self._labels(), **(tags or {})}}, "spec": dict(spec)}
        )

    def _labels(self) -> dict[str, str]:
        return {labels.PART_OF: SET, labels.SET_INDEX: str(self.index)}

    # -- one write of the map ----------------------------------------------------------------------------------------

    def write(self, layout: Layout) -> None:
        """Write the map, then the gangs, then the pods: delete pods of old entries; create pods of new entries, bind
        them, and make them Ready."""
        layout_before = self.layout.get(self.index, ())
        self.layout[self.index] = layout
        self.write_map(layout)
        for entry in layout:
            self.write_gang(entry, ready=self._name(entry) in self._served_gangs)
        for entry in layout_before:
            if entry.key not in {other.key for other in layout}:
                self.story.delete("podgangs", self._name(entry))
        for entry in layout_before:
            self._shrink_entry(entry, next((other for other in layout if other.key == entry.key), None))
        created_pods = [pod for entry in layout for pod in self._grow_entry(entry)]
        anchors = [entry for entry in layout if entry.anchor and self._name(entry) not in self._served_gangs]
        bind_order = created_pods if "tail-first" not in self.faults else created_pods[::-1]
        for pod in bind_order:
            self._record_pod(pod, node="n")
        for entry in anchors:
            self._served_gangs.add(self._name(entry))
        for pod in created_pods:
            if "never-ready" not in self.faults and self.generation not in self.unready_generations:
                self._record_pod(pod, node="n", ready=True)
        for entry in layout:
            self._served_gangs.add(self._name(entry))
            self.write_gang(
                entry, ready="gang-not-ready" not in self.faults and entry.generation not in self.unready_generations
            )

    def write_map(self, layout: Layout) -> None:
        """Write only the map, without its gangs and pods."""
        entries = [
            {"name": self._name(e), HASH: e.generation, "podCliques": dict(e.cliques),
             "pcsgReplicaIndices": {name: list(indices) for name, indices in e.groups.items()},
             **({"labels": {shapes.ANCHOR: "true"}} if e.anchor else {"dependsOn": {"matchLabels": {}}})}
            for e in layout
        ]  # fmt: skip
        spec = {"podCliqueSetReplicaIndex": self.index, "entries": entries}
        self._record("podgangmaps", f"{SET}-{self.index}", spec)

    def write_gang(self, entry: Entry, *, ready: bool) -> None:
        groups = [(f"{SET}-{self.index}-{name}", 1) for name in entry.cliques]
        groups += [
            (f"{SET}-{self.index}-{g}-{i}-{g.lower()}", 1) for g, indices in entry.groups.items() for i in indices
        ]
        podgroups = [{"name": name, "minReplicas": minimum, "podReferences": []} for name, minimum in groups]
        status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
        tags = {**self._labels(), **({shapes.ANCHOR: "true"} if entry.anchor else {})}
        document = {"metadata": {"labels": tags}, "spec": {"podgroups": podgroups}, "status": status}
        self.story.record("podgangs", self._name(entry), document, after=0.1)

    def _name(self, entry: Entry) -> str:
        return f"{SET}-{self.index}-{entry.key}"

    # -- pods --------------------------------------------------------------------------------------------------------

    def bind_pod(self, name: str) -> None:
        self._record_pod(name, node="n")

    def pod_names(self, key: str, clique: str) -> list[str]:
        """Return the pods of a clique in the gang of an entry."""
        return self._pod_names(f"{SET}-{self.index}-{key}", f"{SET}-{self.index}-{clique}")

    def _pod_names(self, gang: str, clique: str) -> list[str]:
        return [name for name, pod in self._pods.items() if pod["gang"] == gang and pod["clique"] == clique]

    def _shrink_entry(self, entry: Entry, entry_after: Entry | None) -> None:
        for key in sorted(entry.components()):
            for clique, desired in self._desired_pods(entry_after, key, entry).items():
                for name in sorted(self._pod_names(self._name(entry), clique))[desired:]:
                    self.delete_pod(name)

    def delete_pod(self, name: str) -> None:
        self._record_pod(name, node="n", ready=self._pods[name].get("ready", False), terminating=True)
        self.story.delete("pods", name)
        del self._pods[name]

    def _desired_pods(self, entry: Entry | None, key: Key, entry_before: Entry) -> dict[str, int]:
        """Return the desired number of pods in a gang by clique."""
        if key.kind == "clique":
            return {f"{SET}-{self.index}-{key.name}": entry.size(key) if entry else 0}
        indices = entry.groups.get(key.name, ()) if entry else ()
        return {
            f"{SET}-{self.index}-{key.name}-{i}-{key.name.lower()}": int(i in indices)
            for i in {*entry_before.groups.get(key.name, ()), *indices}
        }

    def _grow_entry(self, entry: Entry) -> list[str]:
        created_names = []
        for key in sorted(entry.components()):
            for clique, desired in sorted(self._desired_pods(entry, key, entry).items()):
                missing_count = desired - len(self._pod_names(self._name(entry), clique))
                created_names += [self.create_pod(entry, key, clique) for _ in range(missing_count)]
        return created_names

    def create_pod(self, entry: Entry, key: Key, clique: str, *, generation: str = "", gang: str = "") -> str:
        self._created_pod_count += 1
        name = f"pod-{self._created_pod_count}"
        tags = self._labels()
        is_changed = key in self.trace.changed
        tags[labels.TEMPLATE_HASH] = f"{key.name}-{(generation or entry.generation) if is_changed else 'v0'}"
        if key.kind == "group":
            tags[labels.GROUP] = f"{SET}-{self.index}-{key.name}"
            tags[labels.GROUP_INDEX] = clique.split("-")[3]
        self._pods[name] = {"gang": gang or self._name(entry), "clique": clique, "tags": tags}
        if "overlap" in self.faults:
            return name
        self._record_pod(name, gated=True)
        return name

    def _record_pod(self, name: str, **options: Any) -> None:
        pod = self._pods[name]
        pod["ready"] = options.get("ready", False)
        owner = ("podcliques", pod["clique"]) if self._owners else None
        fields = {"gang": pod["gang"], "clique": pod["clique"], "extra": pod["tags"], "owner": owner}
        self.story.pod(name, after=0.01, **fields, **options)
