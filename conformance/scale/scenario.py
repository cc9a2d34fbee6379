"""Scale scenarios: data in `fixtures/scale/` or in a user's file, and the manifests that a run creates from them."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import orjson
from msgspec import Meta

from conformance import documents, formats
from conformance.cluster import gpu_devices, node_profiles, stages
from conformance.data import folder
from conformance.errors import UsageError
from conformance.formats import Format, Text
from conformance.grove.expected import ExpectedObjects, expected
from conformance.grove.restricted import restricted
from conformance.scale.phases import DEFAULT_PHASES, PHASE_OR_CYCLE, LoadPhase, PhaseOrCycle, phases_of

STAGES = "fast"
"""The KWOK stages of scale runs."""


class NodesEntry(Format, frozen=True):
    """The nodes of a scenario."""

    profile: str
    count: Annotated[int, Meta(ge=1)]
    gpus: gpu_devices.Form = "extended"


class ScenarioFormat(Format, frozen=True, kw_only=True):
    """The format of a scenario. Namespace, replicas and scheduler of its PodCliqueSet are filled in."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["ScaleScenario"]
    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_]+$")]
    description: Text
    replicas: Annotated[int, Meta(ge=0, description="Replicas with which the PodCliqueSet is created.")]
    nodes: NodesEntry
    claim_templates: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    manifest: dict[str, Any] | None = None
    set: str | None = None
    """Instead of a manifest: the name of a PodCliqueSet in fixtures/scale/sets/, or a file beside this one."""
    phases: (
        Annotated[
            list[Annotated[PhaseOrCycle, Meta(extra_json_schema=PHASE_OR_CYCLE)]],
            Meta(min_length=1, description="The phases, in order. Without them: deploy, then delete."),
        ]
        | None
    ) = None


@dataclass(frozen=True)
class LoadScenario:
    """One kind of load: a PodCliqueSet, its nodes, and its phases."""

    name: str
    description: str
    replicas: int
    node_profile: str
    node_count: int
    gpus: gpu_devices.Form
    claim_templates: Mapping[str, Any]
    """ResourceClaimTemplates in each namespace: name → spec of the claims."""
    manifest: Mapping[str, Any]
    phases: tuple[LoadPhase, ...]
    digest: str
    """`sha256:` and the digest of everything that determines the load: nodes, set, phases, and the stages of pods. The
    name and the description are not included."""

    @property
    def pods_per_replica(self) -> int:
        """Return the number of pods in a replica of the set."""
        return self.expected(1).pods

    @property
    def peak_replicas(self) -> int:
        """Return the largest number of replicas that the set has in a phase."""
        return max(self.replicas, *(phase.replicas or 0 for phase in self.phases))

    @property
    def pods(self) -> int:
        """Return the number of pods that the set has at its peak."""
        return self.peak_replicas * self.pods_per_replica

    @property
    def within(self) -> float:
        """Return the seconds that the pods may take without an operator: as long as the longest phase may take."""
        return max(phase.within for phase in self.phases)

    def pod_clique_set(self, namespace: str, scheduler_name: str | None) -> dict[str, Any]:
        """Return the PodCliqueSet. Set `schedulerName` of its pods to `scheduler_name`, or leave `schedulerName` unset
        if it is None, so that the implementation chooses."""
        manifest: dict[str, Any] = copy.deepcopy(dict(self.manifest))
        manifest["metadata"]["namespace"] = namespace
        manifest["spec"]["replicas"] = self.replicas
        if scheduler_name is not None:
            for clique in manifest["spec"]["template"]["cliques"]:
                clique["spec"]["podSpec"]["schedulerName"] = scheduler_name
        return manifest

    def plain_pods(self, namespace: str, scheduler_name: str) -> list[dict[str, Any]]:
        """Return plain pods for the raw floor, without an operator: all pods at the peak, or only the pods for which
        there is room, to be scheduled by kube-scheduler with this scheduler name."""
        result = []
        fits = [phase.fits for phase in self.phases if phase.fits is not None]
        for clique in self.expected(min([self.peak_replicas, *fits])).cliques.values():
            for index in range(clique.template.replicas):
                spec = {**clique.template.pod_spec, "schedulerName": scheduler_name}
                metadata = {"name": f"{clique.name}-{index}", "namespace": namespace}
                result.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        return result

    def expected(self, replicas: int) -> ExpectedObjects:
        """Return the objects that an operator creates for this number of replicas."""
        spec = {**self.manifest["spec"], "replicas": replicas}
        return expected({**self.manifest, "spec": spec})

    @property
    def is_coherent(self) -> bool:
        """Return whether PodGangMaps, instead of the template, define the PodGangs (COH-001)."""
        strategy: Mapping[str, Any] = self.manifest["spec"].get("updateStrategy") or {}
        return strategy.get("type") == "Coherent"


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(path.stem for path in (folder("fixtures") / "scale").glob("*.yaml"))


def load(name_or_path: str) -> LoadScenario:
    """Return the scenario in `fixtures/scale/<name>.yaml`, or in a user's file. Raises UsageError if there is none, or
    if it is invalid."""
    path_argument = Path(name_or_path)
    if path_argument.suffix in (".yaml", ".yml"):
        return read(path_argument)
    path = folder("fixtures") / "scale" / f"{name_or_path}.yaml"
    if not path.is_file():
        raise UsageError(f'unknown scale scenario "{name_or_path}"', hint=documents.suggestion(name_or_path, names()))
    return read(path)


def read(path: Path) -> LoadScenario:
    """Read and check one scenario file. Raises UsageError with the file, line and field."""
    document, file = formats.read(path, ScenarioFormat)
    if (file.manifest is None) == (file.set is None):
        problem = "has neither a manifest nor a set" if file.set is None else "has both a manifest and a set"
        raise UsageError(problem, where=document.location(), hint="give one of them")
    try:
        profile = node_profiles.profile(file.nodes.profile)
    except UsageError as error:
        raise UsageError(error.what, where=document.location("nodes", "profile"), hint=error.hint) from error
    manifest = _manifest(document, file)
    data = document.value
    digest_input = {
        "replicas": file.replicas,
        "manifest": manifest,
        "phases": data.get("phases", DEFAULT_PHASES),
        "nodes": {
            "count": file.nodes.count,
            "profile": msgspec.structs.asdict(profile) | {"description": "", "name": ""},
        },
        "stages": stages.load(STAGES),
    }
    if "claimTemplates" in data or "gpus" in data["nodes"]:
        digest_input["devices"] = [data["nodes"].get("gpus"), data.get("claimTemplates")]
    canonical = orjson.dumps(digest_input, default=msgspec.to_builtins, option=orjson.OPT_SORT_KEYS)
    entries = file.phases or msgspec.convert(DEFAULT_PHASES, list[PhaseOrCycle])
    return LoadScenario(
        name=file.name,
        description=file.description,
        replicas=file.replicas,
        node_profile=file.nodes.profile,
        node_count=file.nodes.count,
        gpus=file.nodes.gpus,
        claim_templates=file.claim_templates,
        manifest=manifest,
        phases=phases_of(document, entries, file.replicas),
        digest=f"sha256:{hashlib.sha256(canonical).hexdigest()}",
    )


def _manifest(document: documents.Document, file: ScenarioFormat) -> Mapping[str, Any]:
    """Return the PodCliqueSet of a scenario, from the scenario itself or from another file. Its pods are changed so
    that restricted namespaces admit them. Raises UsageError if it is not a PodCliqueSet with cliques."""
    content: Mapping[str, Any] = file.manifest or {}
    location = document.location("manifest")
    if file.set is not None:
        path = _set_path(document, file.set)
        content, location = documents.parse(path).value, documents.display_path(path)
    manifest = dict(copy.deepcopy(content))
    # A run reads only these fields. The API server checks the rest.
    try:
        cliques = manifest["spec"]["template"]["cliques"]
        is_valid = bool(cliques and manifest["metadata"]["name"]) and all(
            c["name"] and c["spec"]["podSpec"] for c in cliques
        )
        for clique in cliques:
            clique["spec"]["podSpec"] = restricted(clique["spec"]["podSpec"])
    except (KeyError, TypeError, AttributeError):
        is_valid = False
    if not is_valid:
        raise UsageError(
            "is not a PodCliqueSet with cliques",
            where=location,
            hint="give metadata.name and spec.template.cliques, each with a name and spec.podSpec",
        )
    return manifest


def _set_path(document: documents.Document, name: str) -> Path:
    sets = folder("fixtures") / "scale" / "sets"
    for path in (document.path.parent / name, sets / f"{name}.yaml"):
        if path.is_file():
            return path
    names = [path.stem for path in sets.glob("*.yaml")]
    raise UsageError(f'unknown set "{name}"', where=document.location("set"), hint=documents.suggestion(name, names))
