"""Reads a kubeconfig. This is the only module that imports the official client's loader."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Connection:
    """The address of an API server, and credentials.

    `token` returns the value of the Authorization header. It is called for each request, since tokens expire.
    `tls_server_name` is the name expected in the server's certificate if it differs from the host name.
    """

    server: str
    tls: ssl.SSLContext | None
    token: Callable[[], str | None]
    tls_server_name: str | None = None

    def __str__(self) -> str:
        return self.server


def load(kubeconfig: Path | str | Connection) -> Connection:
    """Read a kubeconfig file (client certificates, tokens, exec plugins). A `Connection` is returned unchanged.

    Raises FileNotFoundError if the file does not exist, and kubernetes.config.ConfigException, with the path and the
    reason, if the file is not usable.
    """
    if isinstance(kubeconfig, Connection):
        return kubeconfig
    from kubernetes.config import ConfigException

    if not Path(kubeconfig).is_file():
        raise FileNotFoundError(f"{kubeconfig}: no such kubeconfig file")
    try:
        return _load(kubeconfig)
    except Exception as error:  # the loader does not wrap the YAML, base64 and TypeError exceptions of a broken file
        raise ConfigException(f"{kubeconfig}: not a usable kubeconfig: {' '.join(str(error).split())}") from error


def _load(kubeconfig: Path | str) -> Connection:
    from kubernetes import client, config

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

    def token() -> str | None:
        # Versions of the loader differ in which of the two names they store the token under.
        header: str | None = settings.get_api_key_with_prefix("BearerToken", alias="authorization")
        return header

    return Connection(settings.host, tls, token, settings.tls_server_name)
