"""The meaning of a request to the API server: its verb and object, according to the path conventions of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
_TRUE = frozenset({"1", "true"})


@dataclass(frozen=True)
class Call:
    """A request for a resource. `resource` is `plural.group`, or only the plural for the core group. `namespace` and
    `name` are empty if the path has none."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_dry_run: bool = False
    """Whether the request is a dry run."""

    @property
    def is_write(self) -> bool:
        """Return whether the request changes a stored object. Reviews are created but not stored."""
        return (
            self.verb in WRITE_VERBS
            and not self.is_dry_run
            and not self.resource.endswith("reviews." + _group(self.resource))
        )


def parse_call(method: str, path: str, query: Mapping[str, str]) -> Call | None:
    """Return the call of a request; None if the request is not for a resource, such as /healthz and discovery."""
    segments = [segment for segment in path.split("/") if segment]
    match segments:
        case ["api", _, *rest]:
            group = ""
        case ["apis", group, _, *rest]:
            pass
        case _:
            return None
    if not rest:
        return None
    namespace = ""
    # A namespace is also an object itself: /namespaces/x and its subresources refer to the namespace.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = rest[0], *([*rest[1:3], "", ""])[:2]
    resource = f"{plural}.{group}" if group else plural
    verb = _VERBS.get(method, "")
    if verb == "get" and not name:
        verb = "list"
    if verb in ("get", "list") and query.get("watch") in _TRUE:
        verb = "watch"
    if verb == "delete" and not name:
        verb = "deletecollection"
    return Call(verb, resource, namespace, name, subresource, is_dry_run=bool(query.get("dryRun")))


def _group(resource: str) -> str:
    return resource.partition(".")[2]
