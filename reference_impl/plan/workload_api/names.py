"""Names of the runtime groups and of the templates.

A PodGroup keeps its name until its last pod has been removed, and pods cannot change their group (WL37-L03, WL37-V18).
The name of each group therefore depends on the uid of the gang, and the name of a leaf also on every field that the API
does not permit changing. A gang that is recreated, or that gets another shape, never needs a name that is still in use
(docs/decisions/022-names-of-groups.md).
"""

from __future__ import annotations

import hashlib
import re

from reference_impl.api.models import PodGang
from reference_impl.plan.workload_api.tree import Leaf, Tree, TreeNode

MAX_NAME = 253
MAX_LABEL = 63
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
ROOT = "root"
"""The name of the root's template."""


def digest(*parts: str | None, length: int = 8) -> str:
    """Return a short text that differs for different parts."""
    text = "\0".join("" if part is None else f"={part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _with_digest(base: str, *parts: str | None) -> str:
    end = digest(*parts)
    return f"{base[: MAX_NAME - len(end) - 1]}-{end}"


def composite(gang: PodGang, node: TreeNode) -> str:
    """Return the name of a node's CompositePodGroup."""
    return _with_digest(node.name, gang.metadata.uid, node.name)


def leaf(gang: PodGang, tree: Tree, one: Leaf, parent: TreeNode | None) -> str:
    """Return the name of a leaf's PodGroup. `parent` is None in the flat form."""
    parent_name = None if parent is None else composite(gang, parent)
    return _with_digest(one.clique, gang.metadata.uid, parent_name, one.key, tree.priority_class)


def template(kind: str, name: str) -> str:
    """Return the name of a template: a DNS label that is unique within its Workload (WL37-V12, WL37-V15). `kind` is
    `group` or `leaf`, because a clique and a group of cliques may have the same name."""
    candidate = f"{kind}-{name}"
    return (
        candidate if len(candidate) <= MAX_LABEL and LABEL.fullmatch(candidate) else f"{kind}-{digest(name, length=20)}"
    )
