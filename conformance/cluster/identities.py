"""The actor of a request, by its credential.

A user name is no proof: a client that may ask for the token of a service account, or store a Secret that gets one, can
act as a controller of Kubernetes. But the audit log has an id of the credential of each request, and of each token that
the API server issues on request. So a component is believed only with a credential of its own, however another one was
obtained:

- the components of kwokctl with their certificate, whose id is its digest;
- the API server without an id, when it asks itself;
- controllers with tokens that a component with a credential of its own has asked for. A token of a Secret has no id.

Any other request in the name of a component is the act of the user who asked for the token, or of an unknown one. An
unused credential has no actor: operators may store tokens.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
from pathlib import Path

import msgspec

from conformance.cluster import users
from kube import nesting

UNKNOWN = "unknown"


class Identities:
    """The credentials of the components of a cluster. `certificate`: the id of kwokctl's."""

    def __init__(self, certificate: str = "") -> None:
        self._own_credentials = {(users.COMPONENT, certificate), (users.SERVER, "")}
        self._requesters: dict[str, str] = {}

    def issued(self, token: str, requester: str) -> None:
        """Record the actor of the request for a token, by the id of the token."""
        self._requesters.setdefault(token, requester)

    def actor(self, user: str, credential: str) -> str:
        """Return the user who is the actor of a request. `credential`: its id, empty if it has none."""
        if not users.is_component(user) or (user, credential) in self._own_credentials:
            return user
        requester = self._requesters.get(credential, "") if credential else ""
        return user if users.is_component(requester) else requester or f"{UNKNOWN} (as {user})"


def of_certificate(path: Path) -> str:
    """Return the id of a certificate (PEM), as the API server computes it."""
    return f"X509SHA256={hashlib.sha256(ssl.PEM_cert_to_DER_cert(path.read_text().strip())).hexdigest()}"


class _Claims(msgspec.Struct):
    jti: str = ""


_CLAIMS = msgspec.json.Decoder(_Claims)


def of_token(token: str) -> str:
    """Return the id of a token that the API server has issued. Raises ValueError or MsgspecError for anything else."""
    _, claims, _ = token.split(".")
    text = base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))
    return f"JTI={_CLAIMS.decode(nesting.bounded(text, 'a token')).jti}"
