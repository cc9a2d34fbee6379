"""The hashes of pod templates as Grove operators store them, computed by the suite itself (spec HASH-010 to HASH-110).

An operator may write any of these hashes; tests use them to imitate objects of an earlier operator. The code is plain
and slow: it follows the rules of the specification one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kube.gotypes import LIBRARIES, pod_template_types

Document = Mapping[str, Any]

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
IN_ORDER = "CliqueStartupTypeInOrder"

_ROOT = "v1.PodTemplateSpec"
_KEYS: Mapping[str, Callable[[Document], Any]] = {
    **dict.fromkeys(
        ("containers", "ephemeralContainers", "volumes", "imagePullSecrets", "resourceClaims", "schedulingGates"),
        lambda item: item.get("name") or "",
    ),
    "hostAliases": lambda item: item.get("ip") or "",
    "topologySpreadConstraints": lambda item: (item.get("topologyKey") or "", item.get("whenUnsatisfiable") or ""),
}
_INNER_KEYS: Mapping[str, Callable[[Document], Any]] = {
    "ports": lambda item: (item.get("containerPort") or 0, item.get("protocol") or ""),
    "volumeMounts": lambda item: item.get("mountPath") or "",
    "volumeDevices": lambda item: item.get("devicePath") or "",
}


class NotReadable(Exception):
    """A template contains a value whose hashed text the suite cannot compute."""


@dataclass(frozen=True)
class HashScheme:
    """A hashing scheme: the version of the Kubernetes libraries, and whether the template is hashed in its canonical
    form or as stored."""

    library: str
    canonical: bool

    def __str__(self) -> str:
        return f"{'canonical' if self.canonical else 'legacy'}, Kubernetes libraries {self.library}"


LEGACY = tuple(HashScheme(library, False) for library in LIBRARIES)
CANONICAL = tuple(HashScheme(library, True) for library in LIBRARIES)


def of_clique(template: Document, priority: str, scheme: HashScheme) -> str:
    """Return the pod template hash of a clique template in a set with this priority class (HASH-010, HASH-012)."""
    return _encoded(_text(template, priority, scheme))


def of_set(template: Document, scheme: HashScheme) -> str:
    """Return the generation hash of a set's `spec.template` (HASH-011, HASH-105, HASH-106)."""
    priority = template.get("priorityClassName") or ""
    cliques: Sequence[Document] = template.get("cliques") or ()
    if scheme.canonical and template.get("cliqueStartupType") == IN_ORDER:
        texts = [
            "(kubernetes.podTemplateSpecHashInput){OrderKey:(string)"
            f"{clique['name']} PodTemplateSpec:{_text(clique, priority, scheme)}}}"
            for clique in cliques
        ]
    else:
        ordered = sorted(cliques, key=lambda clique: str(clique["name"])) if scheme.canonical else cliques
        texts = [_text(clique, priority, scheme) for clique in ordered]
    return _encoded("".join(texts))


def _encoded(text: str) -> str:
    state = 14695981039346656037
    for byte in text.encode():
        state = (state ^ byte) * 1099511628211 % 2**64
    return "".join(ALPHABET[ord(digit) % 27] for digit in str(state))


def _text(clique: Document, priority: str, scheme: HashScheme) -> str:
    spec = dict(clique["spec"].get("podSpec") or {})
    spec["priorityClassName"] = priority
    metadata = {"labels": clique.get("labels"), "annotations": clique.get("annotations")}
    value = {"metadata": metadata, "spec": _canonical(spec) if scheme.canonical else spec}
    return f"(*{_ROOT}){_struct(_ROOT, value, scheme.library)}"


def _canonical(spec: dict[str, Any]) -> dict[str, Any]:
    for name, key in _KEYS.items():
        if spec.get(name):
            spec[name] = sorted(spec[name], key=key)
    for name in ("containers", "initContainers", "ephemeralContainers"):
        if spec.get(name):
            spec[name] = [_canonical_container(dict(container)) for container in spec[name]]
    return spec


def _canonical_container(container: dict[str, Any]) -> dict[str, Any]:
    for name, key in _INNER_KEYS.items():
        if container.get(name):
            container[name] = sorted(container[name], key=key)
    claims = (container.get("resources") or {}).get("claims")
    if claims:
        by_name = sorted(claims, key=lambda claim: claim.get("name") or "")
        container["resources"] = {**container["resources"], "claims": by_name}
    return container


def _struct(name: str, value: Document, library: str) -> str:
    texts = []
    for field in pod_template_types().fields(name, library):
        field_value = value if field.embedded and not field.json else value.get(field.json)
        texts.append(f"{field.name}:({field.type}){_value(field.type, field_value, library)}")
    return "{" + " ".join(texts) + "}"


def _value(type_name: str, value: Any, library: str) -> str:
    types = pod_template_types()
    type_name = types.kinds.get(type_name, type_name)
    if type_name.startswith("*"):
        return "<nil>" if value is None else _value(type_name[1:], value, library)
    if type_name.startswith("[]"):
        return "<nil>" if value is None else f"[{' '.join(_value(type_name[2:], item, library) for item in value)}]"
    if type_name.startswith("map["):
        element = type_name.partition("]")[2]
        if value is None:
            return "<nil>"
        return f"map[{' '.join(f'{key}:{_value(element, value[key], library)}' for key in sorted(value))}]"
    match type_name:
        case "resource.Quantity":
            return _quantity(value)
        case "intstr.IntOrString":
            number, text = (0, value) if isinstance(value, str) else (value or 0, "")
            return f"{{Type:(intstr.Type){int(isinstance(value, str))} IntVal:(int32){number} StrVal:(string){text}}}"
        case "v1.Time":
            return "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"
        case "string":
            return value or ""
        case "bool":
            return "true" if value else "false"
    return _struct(type_name, value or {}, library) if type_name in types.structs else str(value or 0)


_UNITS = {"": 0, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}


def _quantity(value: object) -> str:
    """Return the hashed text of a quantity (HASH-060 to HASH-066). Only whole numbers that are not too large and have a
    common suffix are supported; raises NotReadable for other quantities."""
    text = "" if value is None else str(value)
    digits = text.rstrip("mkKMGTi")
    suffix = text[len(digits) :]
    max_digits = 14 - _UNITS.get(suffix, 0) * 3 // 10 if suffix.endswith("i") else 12
    has_leading_zero = digits.startswith("0") and text != "0"
    if text and (not digits.isdigit() or len(digits) > max_digits or suffix not in _UNITS or has_leading_zero):
        raise NotReadable(f"the suite does not know the text of the quantity {text!r}")
    is_binary = suffix.endswith("i")
    power = _UNITS[suffix]
    amount = int(digits or 0) * (2**power if is_binary else 1)
    is_verbatim = bool(text) and (int(digits) % 8 != 0 if is_binary else not digits.endswith("000"))
    form = "BinarySI" if is_binary else "DecimalSI" if text else ""
    return (
        f"{{i:(resource.int64Amount){{value:(int64){amount} scale:(resource.Scale){0 if is_binary else power}}} "
        f"d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){text if is_verbatim else ''} "
        f"Format:(resource.Format){form}}}"
    )
