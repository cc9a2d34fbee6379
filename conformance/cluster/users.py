"""The users of a cluster of ours: each has a user name of its own, proven by a certificate of the cluster.

The actor of a request is its user, which the API server has verified. A user agent is a claim of the client. The user
of an implementation's role has the role's name.
"""

from __future__ import annotations

SUITE = "grove-conformance"
"""The user of the suite: of its tests, its recorder and its installations."""
ADMINISTRATOR = "kubernetes-admin"
"""The user of the kubeconfig for people."""
MASTERS = "system:masters"
"""The group of both: their rights depend on no object that could be deleted."""

COMPONENT = "kwok-admin"
"""kwokctl's own user, which only its components have (FC-022)."""
SERVER = "system:apiserver"
"""The API server's user, with which it asks itself."""
COMPONENTS = (COMPONENT, SERVER)
CONTROLLERS = "system:serviceaccounts:kube-system"
"""The group of the controllers of kube-controller-manager, each of which is a user of its own."""
_CONTROLLER = "system:serviceaccount:kube-system:"
"""The prefix of the names of these users."""


def is_component(user: str) -> bool:
    """Return whether a user is a component of a cluster of ours. `identities` decides whether a request is its act."""
    return user in COMPONENTS or user.startswith(_CONTROLLER)
