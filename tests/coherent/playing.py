"""A simulated operator, scheduler and kubelet that follow a trace and produce a history to judge, with places to inject
faults."""

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


Fault = Callable[["Played"], object]


class Played:
    """One or more replicas of the set `s`. Each scaling group has one clique with one pod; its name is the group's in
    lower case."""

    def __init__(
        self,
        trace: Trace,
        faults: Sequence[str] = (),
        replicas: int = 1,
        after: Mapping[int, Fault] | None = None,
        owners: bool = False,
        budgets: bool = True,
    ) -> None:
        """`after` maps the number of a write of the last replica to the fault that follows it. With `owners`, each
        pod's controller is the clique that exists when the pod is created. With `budgets`, the templates have
        maxUnavailable."""
        self.log = Scripted()
        self.story, self.trace, self.faults, self.replicas = Story(self.log), trace, set(faults), replicas
        self.strategy, self.frozen = "Coherent", frozenset[str]()
        self._owners, self._budgets = owners, budgets
        self.index, self._after = 0, dict(after or {})
        self.before_updates: Fault | None = None
        """The fault to inject after the set is deployed."""
        self.layout: dict[int, Layout] = {}
        self.running, self.generation, self.turns = False, "v0", [0]
        self._pods: dict[str, dict[str, Any]] = {}
        self._created = 0
        self._served_gangs: set[str] = set()

    def play(self) -> Played:
        """Play the whole trace, starting with the creation of the set."""
        for index in range(self.replicas):
            self.index = index
            self._children()
            self.write(self.trace.writes[0].layout)
        if self.before_updates is not None:
            self.before_updates(self)
        for index in range(self.replicas):
            self.index = index
            for number, write in enumerate(self.trace.writes[1:], 1):
                if write.begins:
                    self.begin(write.begins)
                self.write(write.layout)
                if number in self._after and index == self.replicas - 1:
                    self._after[number](self)
        self.end()
        return self

    # -- the set ---------------------------------------------------------------------------------------------------

    def set(self, **status: Any) -> None:
        def budget(c: Component) -> dict[str, Any]:
            return {"rollingUpdate": {"maxUnavailable": c.unavailable}} if self._budgets else {}

        cliques = [
            {"name": c.key.name, "spec": {"replicas": c.replicas, "minAvailable": c.minimum}, **budget(c)}
            for c in self.trace.components if c.key.kind == "clique"
        ]  # fmt: skip
        groups = [c for c in self.trace.components if c.key.kind == "group"]
        cliques += [{"name": c.key.name.lower(), "spec": {"replicas": 1, "minAvailable": 1}} for c in groups]
        listed = [
            {"name": c.key.name, "cliqueNames": [c.key.name.lower()], "replicas": c.replicas,
             "minAvailable": c.minimum, **budget(c)} for c in groups
        ]  # fmt: skip
        template = {"cliques": cliques, "podCliqueScalingGroups": listed}
        spec = {"replicas": self.replicas, "updateStrategy": {"type": self.strategy}, "template": template}
        status = {"currentGenerationHash": self.generation, **status}
        self.story.record("podcliquesets", SET, {"spec": spec, "status": status})

    def begin(self, generation: str) -> None:
        self.generation, self.running = generation, True
        self.set(updateProgress=self._progress())

    def end(self) -> None:
        self.running = False
        self.set(updateProgress={**self._progress(), "updateEndedAt": "2026-01-01T00:01:00Z", "currentlyUpdating": []})
        self.log.clock = self.story.at + 10

    def _progress(self) -> dict[str, Any]:
        scope = self.trace.changed
        return {
            "updateStartedAt": "2026-01-01T00:00:00Z",
            "currentlyUpdating": [{"replicaIndex": self.index}],
            "updatedStandalonePodCliques": [key.name for key in scope if key.kind == "clique"],
            "updatedPodCliqueScalingGroups": [key.name for key in scope if key.kind == "group"],
        }

    def _children(self) -> None:
        if self.index == 0:
            self.set()
        for component in self.trace.components:
            plural = "podcliques" if component.key.kind == "clique" else "podcliquescalinggroups"
            spec = {"replicas": component.replicas, "minAvailable": component.minimum}
            name = f"{SET}-{self.index}-{component.key.name}"
            self._record(plural, name, spec)
            for at in range(component.replicas if component.key.kind == "group" else 0):
                tags = {labels.GROUP: name, labels.GROUP_INDEX: str(at)}
                self._record("podcliques", f"{name}-{at}-{component.key.name.lower()}", {"replicas": 1}, tags)

    def scale(self, clique: str, replicas: int) -> None:
        """Scale a standalone clique."""
        self._record("podcliques", f"{SET}-{self.index}-{clique}", {"replicas": replicas, "minAvailable": 1})

    def _record(self, resource: str, name: str, spec: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> None:
        self.story.record(
            resource, name, {"metadata": {"labels": {**self._tags(), **(tags or {})}}, "spec": dict(spec)}
        )

    def _tags(self) -> dict[str, str]:
        return {labels.PART_OF: SET, labels.SET_INDEX: str(self.index)}

    # -- one write of the map ----------------------------------------------------------------------------------------

    def write(self, layout: Layout) -> None:
        """Write the map, then the gangs, then the pods: delete pods of old entries; create, bind and make Ready those
        of new ones."""
        before = self.layout.get(self.index, ())
        self.layout[self.index] = layout
        self.map(layout)
        for entry in layout:
            self.gang(entry, ready=self._name(entry) in self._served_gangs)
        for entry in before:
            if entry.key not in {other.key for other in layout}:
                self.story.delete("podgangs", self._name(entry))
        for entry in before:
            self._shrink(entry, next((other for other in layout if other.key == entry.key), None))
        waiting = [pod for entry in layout for pod in self._grow(entry)]
        anchors = [entry for entry in layout if entry.anchor and self._name(entry) not in self._served_gangs]
        order = waiting if "tail-first" not in self.faults else waiting[::-1]
        for pod in order:
            self._pod(pod, node="n")
        for entry in anchors:
            self._served_gangs.add(self._name(entry))
        for pod in waiting:
            if "never-ready" not in self.faults and self.generation not in self.frozen:
                self._pod(pod, node="n", ready=True)
        for entry in layout:
            self._served_gangs.add(self._name(entry))
            self.gang(entry, ready="gang-not-ready" not in self.faults and entry.generation not in self.frozen)

    def map(self, layout: Layout) -> None:
        """Write only the map, without its gangs and pods."""
        entries = [
            {"name": self._name(e), HASH: e.generation, "podCliques": dict(e.cliques),
             "pcsgReplicaIndices": {name: list(at) for name, at in e.groups.items()},
             **({"labels": {shapes.ANCHOR: "true"}} if e.anchor else {"dependsOn": {"matchLabels": {}}})}
            for e in layout
        ]  # fmt: skip
        spec = {"podCliqueSetReplicaIndex": self.index, "entries": entries}
        self._record("podgangmaps", f"{SET}-{self.index}", spec)

    def gang(self, entry: Entry, *, ready: bool) -> None:
        groups = [(f"{SET}-{self.index}-{name}", 1) for name in entry.cliques]
        groups += [(f"{SET}-{self.index}-{g}-{i}-{g.lower()}", 1) for g, at in entry.groups.items() for i in at]
        podgroups = [{"name": name, "minReplicas": least, "podReferences": []} for name, least in groups]
        status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
        tags = {**self._tags(), **({shapes.ANCHOR: "true"} if entry.anchor else {})}
        document = {"metadata": {"labels": tags}, "spec": {"podgroups": podgroups}, "status": status}
        self.story.record("podgangs", self._name(entry), document, after=0.1)

    def _name(self, entry: Entry) -> str:
        return f"{SET}-{self.index}-{entry.key}"

    # -- pods --------------------------------------------------------------------------------------------------------

    def bind(self, name: str) -> None:
        self._pod(name, node="n")

    def of(self, key: str, clique: str) -> list[str]:
        """Return the pods of a clique in the gang of an entry."""
        return self._of(f"{SET}-{self.index}-{key}", f"{SET}-{self.index}-{clique}")

    def _of(self, gang: str, clique: str) -> list[str]:
        return [name for name, pod in self._pods.items() if pod["gang"] == gang and pod["clique"] == clique]

    def _shrink(self, entry: Entry, now: Entry | None) -> None:
        for key in sorted(entry.components()):
            for clique, desired in self._desired(now, key, entry).items():
                for name in sorted(self._of(self._name(entry), clique))[desired:]:
                    self.delete(name)

    def delete(self, name: str) -> None:
        self._pod(name, node="n", ready=self._pods[name].get("ready", False), terminating=True)
        self.story.delete("pods", name)
        del self._pods[name]

    def _desired(self, entry: Entry | None, key: Key, also: Entry) -> dict[str, int]:
        """Return clique → the number of its pods that a gang is to have."""
        if key.kind == "clique":
            return {f"{SET}-{self.index}-{key.name}": entry.size(key) if entry else 0}
        indices = entry.groups.get(key.name, ()) if entry else ()
        return {
            f"{SET}-{self.index}-{key.name}-{i}-{key.name.lower()}": int(i in indices)
            for i in {*also.groups.get(key.name, ()), *indices}
        }

    def _grow(self, entry: Entry) -> list[str]:
        created = []
        for key in sorted(entry.components()):
            for clique, desired in sorted(self._desired(entry, key, entry).items()):
                missing_count = desired - len(self._of(self._name(entry), clique))
                created += [self.create(entry, key, clique) for _ in range(missing_count)]
        return created

    def create(self, entry: Entry, key: Key, clique: str, *, generation: str = "", gang: str = "") -> str:
        self._created += 1
        name = f"pod-{self._created}"
        tags = self._tags()
        changed = key in self.trace.changed
        tags[labels.TEMPLATE_HASH] = f"{key.name}-{(generation or entry.generation) if changed else 'v0'}"
        if key.kind == "group":
            tags[labels.GROUP] = f"{SET}-{self.index}-{key.name}"
            tags[labels.GROUP_INDEX] = clique.split("-")[3]
        self._pods[name] = {"gang": gang or self._name(entry), "clique": clique, "tags": tags}
        if "overlap" in self.faults:
            return name
        self._pod(name, gated=True)
        return name

    def _pod(self, name: str, **options: Any) -> None:
        pod = self._pods[name]
        pod["ready"] = options.get("ready", False)
        owner = ("podcliques", pod["clique"]) if self._owners else None
        fields = {"gang": pod["gang"], "clique": pod["clique"], "extra": pod["tags"], "owner": owner}
        self.story.pod(name, after=0.01, **fields, **options)
