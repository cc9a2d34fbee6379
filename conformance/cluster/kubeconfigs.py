"""The kubeconfig of a cluster of ours."""

from __future__ import annotations

import base64

import yaml

from conformance import disk
from conformance.cluster.facts import Facts


def write(facts: Facts) -> None:
    """Write an administrator's kubeconfig with the certificates embedded."""

    def embedded(file_name: str) -> str:
        return base64.b64encode((facts.workspace / "pki" / file_name).read_bytes()).decode()

    name = f"grove-conformance-{facts.name}"
    cluster = {"server": facts.server, "certificate-authority-data": embedded("ca.crt")}
    user = {"client-certificate-data": embedded("admin.crt"), "client-key-data": embedded("admin.key")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    disk.write(facts.kubeconfig, yaml.safe_dump(document))
