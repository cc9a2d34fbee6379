"""The actor of a request, determined by its credential.

A user name is not a proof: a client that may request the token of a service account, or store a Secret that gets one,
can act as a controller of Kubernetes. However, the audit log contains an id for the credential of each request, and for
each token that the API server issues on request. Therefore a component is trusted only if it has its own credential. It
does not matter how a client has obtained another credential:

- the components of kwokctl have their certificate, whose id is its digest;
- the API server has no id when it sends requests to itself;
- controllers have tokens that a component with its own credential has requested. A token from a Secret has no id.

The actor of any other request in the name of a component is the user who requested the token, or an unknown user.
Requesting a token without using it is permitted, because operators may store tokens.
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
    """The credentials of the components of a cluster. `certificate` is the id of kwokctl's certificate."""

    def __init__(self, certificate: str = "") -> None:
        self._own_credentials = {(users.COMPONENT, certificate), (users.SERVER, "")}
        self._requesters: dict[str, str] = {}

    def issued(self, token: str, requester: str) -> None:
        """Record who requested a token, by the id of the token."""
        self._requesters.setdefault(token, requester)

    def actor(self, user: str, credential: str) -> str:
        """Return the user who is the actor of a request. `credential` is the id of the request's credential, or
        empty."""
        if not users.is_component(user) or (user, credential) in self._own_credentials:
            return user
        requester = self._requesters.get(credential, "") if credential else ""
        return user if users.is_component(requester) else requester or f"{UNKNOWN} (as {user})"


def certificate_id(path: Path) -> str:
    """Return the id of a certificate (PEM), as the API server computes it."""
    return f"X509SHA256={hashlib.sha256(ssl.PEM_cert_to_DER_cert(path.read_text().strip())).hexdigest()}"


class _Claims(msgspec.Struct):
    jti: str = ""


_CLAIMS = msgspec.json.Decoder(_Claims)


def token_id(token: str) -> str:
    """Return the id of a token that the API server has issued. Raises ValueError or MsgspecError for any other text."""
    _, claims, _ = token.split(".")
    text = base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))
    return f"JTI={_CLAIMS.decode(nesting.limit_depth(text, 'a token')).jti}"
