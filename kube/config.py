"""Reading a kubeconfig. The only module that imports the official client's loader (anchors U-18)."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Connection:
    """Where an API server is and how to prove who we are. `token` is asked anew for each request (it may expire)."""

    server: str
    tls: ssl.SSLContext | None
    token: Callable[[], str | None]


def load(kubeconfig: Path | str) -> Connection:
    """Reads a kubeconfig file (client certificates, tokens, exec plugins).

    Raises FileNotFoundError, or kubernetes.config.ConfigException with the loader's own words.
    """
    from kubernetes import client, config

    if not Path(kubeconfig).is_file():
        raise FileNotFoundError(f"{kubeconfig}: no such kubeconfig file")
    settings = client.Configuration()
    load_kube_config: Callable[..., None] = config.load_kube_config
    load_kube_config(config_file=str(kubeconfig), client_configuration=settings)
    tls = None
    if settings.host.startswith("https"):
        tls = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        if not settings.verify_ssl:
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        if settings.cert_file:
            tls.load_cert_chain(settings.cert_file, settings.key_file)
    return Connection(settings.host, tls, lambda: settings.get_api_key_with_prefix("authorization"))
