"""The users of a cluster of the suite. Each of them has a separate user name, which is proven by a certificate of the
cluster.

The actor of a request is its user, whom the API server has authenticated, whereas the client itself chooses the user
agent. The user of an implementation's role has the role's name.
"""

from __future__ import annotations

SUITE = "grove-conformance"
"""The user of the suite: of its tests, its recorder and its installations."""
ADMINISTRATOR = "kubernetes-admin"
"""The user of the kubeconfig for people."""
MASTERS = "system:masters"
"""The group of both users. Its permissions do not depend on any object that could be deleted."""

COMPONENT = "kwok-admin"
"""kwokctl's own user, which only its components have (FC-022)."""
SERVER = "system:apiserver"
"""The API server's user for requests to itself."""
COMPONENTS = (COMPONENT, SERVER)
CONTROLLERS = "system:serviceaccounts:kube-system"
"""The group of the controllers of kube-controller-manager, each of which is a separate user."""
_CONTROLLER = "system:serviceaccount:kube-system:"
"""The prefix of the names of these users."""


def is_component(user: str) -> bool:
    """Return whether a user is a component of a cluster of the suite. `identities` decides whether a request was really
    made by the component."""
    return user in COMPONENTS or user.startswith(_CONTROLLER)
