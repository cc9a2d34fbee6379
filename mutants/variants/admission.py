"""Variants of admission's answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutants.profiles.admission import FORCED_POLICY
from mutants.registry import variant
from mutants.replacement import replace
from reference_impl.admission.errors import invalid
from reference_impl.admission.rules import cliques, names, paths, topology
from reference_impl.plan import defaults
from reference_impl.plan.children import Manifest
from reference_impl.plan.pods import PodBuilder


@variant(
    "policy-forced", "operator", "sets the restart policy of pods to Always, and warns about it", "ADM-026", "ADM-046"
)
def _policy_forced() -> None:
    warnings, pod = cliques.warnings, PodBuilder.pod

    def forced(self: PodBuilder, index: int, gang: str) -> Manifest:
        manifest = pod(self, index, gang)
        return {**manifest, "spec": {**manifest["spec"], "restartPolicy": "Always"}}

    replace(cliques, "warnings", lambda pcs: [FORCED_POLICY for _ in warnings(pcs)])
    replace(PodBuilder, "pod", forced)


@variant("warnings-in-other-words", "operator", "warns about a coarser preferred domain with another text", "ADM-033")
def _warnings_in_other_words() -> None:
    right = topology.warnings

    def warnings(pcs: Any, known: Any) -> Iterator[str]:
        for warning in right(pcs, known):
            field = warning.split(" ", 1)[0]
            yield f"{field}: has no effect, as the required domain is narrower"

    replace(topology, "warnings", warnings)


@variant(
    "null-container-completed",
    "operator",
    "takes a null for a container without fields, and calls a missing list of cliques invalid",
    "ADM-036",
)
def _null_container_completed() -> None:
    template, violations = defaults._template, names.violations

    def completed(given: dict[str, Any]) -> Iterator[defaults.Operation]:
        yield from template(given)
        for i, clique in defaults._mappings(given.get("cliques")):
            pod = defaults._mapping(defaults._mapping(clique.get("spec")).get("podSpec"))
            for j, container in enumerate(defaults._listed(pod.get("containers"))):
                if container is None:
                    path = f"{defaults.ROOT}/cliques/{i}/spec/podSpec/containers/{j}"
                    yield {"op": "replace", "path": path, "value": {"name": "", "resources": {}}}

    def called_invalid(pcs: Any) -> Iterator[Any]:
        for error in violations(pcs):
            yield invalid(paths.TEMPLATE, None, error.detail) if error.path == paths.CLIQUES else error

    replace(defaults, "_template", completed)
    replace(names, "violations", called_invalid)
