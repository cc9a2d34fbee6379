"""Who is who on a cluster of ours: each has a user name of its own, proven by a certificate of the cluster.

Whoever is asked who did something answers by the user, which the API server has verified. A user agent is what a client
says of itself. The user of an implementation's role has the role's name.
"""

from __future__ import annotations

SUITE = "grove-conformance"
"""The user of the suite: of its tests, its recorder and what it installs."""
ADMINISTRATOR = "kubernetes-admin"
"""The user of the kubeconfig for people."""
MASTERS = "system:masters"
"""The group of both: what they may do depends on no object that somebody could delete."""

COMPONENT = "kwok-admin"
"""kwokctl's own user, which nobody but its components has (FC-022)."""
SERVER = "system:apiserver"
"""The API server's user, with which it asks itself."""
COMPONENTS = (COMPONENT, SERVER)
CONTROLLERS = "system:serviceaccounts:kube-system"
"""The group of the controllers of kube-controller-manager, each of which is a user of its own."""
_CONTROLLER = "system:serviceaccount:kube-system:"
"""The prefix of the names of these users."""


def is_component(user: str) -> bool:
    """Return whether a user is a component of a cluster of ours. `identities` tells whether a request is its act."""
    return user in COMPONENTS or user.startswith(_CONTROLLER)
