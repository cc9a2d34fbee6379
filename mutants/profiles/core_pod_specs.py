"""Mutants of the pod spec fields that pods and cliques take from their template. There is one mutant for each class of
fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mutants.registry import mutant
from mutants.replacement import alter
from reference_impl.plan import children, labels
from reference_impl.plan.children import Manifest
from reference_impl.plan.pods import PodBuilder

Change = Callable[[Manifest], Manifest]

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
OF_PODS: Mapping[str, tuple[str, ...]] = {
    "accounts": ("serviceAccountName", "serviceAccount", "automountServiceAccountToken"),
    "deadlines": ("activeDeadlineSeconds", "terminationGracePeriodSeconds"),
    "dns": ("dnsPolicy", "dnsConfig"),
    "host-aliases": ("hostAliases",),
    "host-namespaces": ("hostIPC", "hostPID", "shareProcessNamespace"),
    "host-names": ("hostnameOverride", "setHostnameAsFQDN"),
    "operating-systems": ("os",),
    "placements": ("affinity", "nodeSelector", "tolerations"),
    "pod-resources": ("resources",),
    "pod-security": ("securityContext",),
    "priorities": ("priorityClassName", "priority", "preemptionPolicy"),
    "pull-secrets": ("imagePullSecrets",),
    "readiness-gates": ("readinessGates",),
    "runtime-classes": ("runtimeClassName", "overhead"),
    "service-links": ("enableServiceLinks",),
}
"""The fields of pod specs, by class."""
OF_CONTAINERS: Mapping[str, tuple[str, ...]] = {
    "commands": ("command", "args", "workingDir"),
    "container-resources": ("resources", "resizePolicy"),
    "container-security": ("securityContext",),
    "lifecycles": ("lifecycle",),
    "mounts": ("volumeMounts", "volumeDevices"),
    "probes": PROBES,
    "pull-policies": ("imagePullPolicy",),
    "terminals": ("stdin", "stdinOnce", "tty"),
    "termination-messages": ("terminationMessagePath", "terminationMessagePolicy"),
    "variable-sources": ("envFrom",),
}
"""The fields of containers and init containers, by class."""
OF_SIDECARS = (*PROBES, "lifecycle", "resizePolicy", "restartPolicy")
OF_VOLUMES = ("defaultMode", "items", "optional", "readOnly")


def _without(fields: Sequence[str]) -> Change:
    return lambda holder: {key: value for key, value in holder.items() if key not in fields}


def _of_containers(spec: Manifest, change: Change, *kinds: str) -> Manifest:
    """Return a pod spec with `change` applied to all containers except Grove's init container."""
    changed = {
        kind: [
            container if container["name"] == labels.INIT_CONTAINER else change(container) for container in spec[kind]
        ]
        for kind in kinds or ("initContainers", "containers")
        if spec.get(kind)
    }
    return {**spec, **changed}


def _in_volumes(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_volumes(item) for key, item in value.items() if key not in OF_VOLUMES}
    return [_in_volumes(item) for item in value] if isinstance(value, list) else value


def _without_claims(spec: Manifest) -> Manifest:
    def change(container: Manifest) -> Manifest:
        resources = container.get("resources")
        return {**container, "resources": _without(["claims"])(resources)} if resources else container

    return _without(["resourceClaims"])(_of_containers(spec, change))


def _reversed_arguments(spec: Manifest) -> Manifest:
    return _of_containers(spec, lambda c: {**c, "args": c["args"][::-1]} if c.get("args") else c)


def _more_arguments(spec: Manifest) -> Manifest:
    return _of_containers(spec, lambda c: {**c, "args": [*c["args"], c["args"][0]]} if c.get("args") else c)


def _reversed_variables(spec: Manifest) -> Manifest:
    def change(container: Manifest) -> Manifest:
        variables = container.get("env") or []
        grove_variables = [variable for variable in variables if variable["name"].startswith("GROVE_")]
        foreign = [variable for variable in variables if not variable["name"].startswith("GROVE_")]
        return {**container, "env": [*grove_variables, *foreign[::-1]]}

    return _of_containers(spec, change)


def _reversed_init_containers(spec: Manifest) -> Manifest:
    containers = spec.get("initContainers") or []
    waiting = [container for container in containers if container["name"] == labels.INIT_CONTAINER]
    foreign = [container for container in containers if container["name"] != labels.INIT_CONTAINER]
    return {**spec, "initContainers": [*waiting, *foreign[::-1]]} if foreign else spec


def _lost(spec: Manifest) -> Manifest:
    """Return a pod spec without the fields of all classes."""
    spec = _without([field for fields in OF_PODS.values() for field in fields])(spec)
    spec = _of_containers(spec, _without([field for fields in OF_CONTAINERS.values() for field in fields]))
    return _without_claims(_of_containers(spec, _without(OF_SIDECARS), "initContainers"))


def _all_of_it(spec: Manifest) -> Manifest:
    return _lost(_reversed_init_containers(_reversed_variables(_more_arguments(_reversed_arguments(spec)))))


def _of_pods(change: Change) -> Callable[[], None]:
    return lambda: alter(PodBuilder, "pod", lambda pod, *_: {**pod, "spec": change(pod["spec"])})


def _of_cliques(change: Change) -> Callable[[], None]:
    def clique(manifest: Manifest, *_: Any, **__: Any) -> Manifest:
        return {**manifest, "spec": {**manifest["spec"], "podSpec": change(manifest["spec"]["podSpec"])}}

    return lambda: alter(children, "_clique_manifest", clique)


def _register() -> None:
    for name, text, change in (
        ("arguments-reversed", "reverses the arguments of containers", _reversed_arguments),
        ("arguments-repeated", "repeats the first argument of containers after the last", _more_arguments),
        ("template-variables-reversed", "reverses the variables of the template", _reversed_variables),
        ("init-containers-reversed", "reverses the init containers of the template", _reversed_init_containers),
        ("pod-fields-lost", "omits the fields of pods that an old library does not know", _lost),
        ("templates-garbled", "reverses lists of the template, and omits fields", _all_of_it),
        ("claims-lost", "omits the ResourceClaims of pods", _without_claims),
        ("volume-details-lost", "omits modes, items and flags of volumes", lambda s: {**s, **_details(s)}),
        ("restart-rules-lost", "omits the restart rules of containers", _without_rules),
        ("sidecars-lost", "makes init containers of sidecars", _without_sidecars),
    ):
        mutant("operator", text, "CORE-014", name=name)(_of_pods(change))
    for name, fields in OF_PODS.items():
        mutant("operator", f"omits {', '.join(fields)} of pods", "CORE-014", name=f"{name}-lost")(
            _of_pods(_without(fields))
        )
    for name, fields in OF_CONTAINERS.items():
        mutant("operator", f"omits {', '.join(fields)} of containers", "CORE-014", name=f"{name}-lost")(
            _of_pods(partial(_of_containers, change=_without(fields)))
        )
    for name, text, change in (
        ("clique-arguments-reversed", "reverses the arguments of containers in cliques", _reversed_arguments),
        ("clique-fields-lost", "omits the fields of cliques that an old library does not know", _lost),
    ):
        mutant("operator", text, "CORE-015", name=name)(_of_cliques(change))
    mutant("operator", "replaces the scheduling gates of a template", "CORE-044", name="template-gates-lost")(
        _of_pods(lambda spec: {**spec, "schedulingGates": [{"name": labels.GATE}]})
    )


def _details(spec: Manifest) -> Manifest:
    return {"volumes": _in_volumes(spec["volumes"])} if spec.get("volumes") else {}


def _without_rules(spec: Manifest) -> Manifest:
    return _of_containers(spec, _without(("restartPolicy", "restartPolicyRules")), "containers")


def _without_sidecars(spec: Manifest) -> Manifest:
    return _of_containers(spec, _without(OF_SIDECARS), "initContainers")


_register()
