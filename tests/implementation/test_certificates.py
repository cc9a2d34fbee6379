"""Tests that TLS clients on loopback accept the certificates, and that only their owner can read them."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest

from conformance import credentials
from conformance.implementation.certificates import Certificates


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_client_that_trusts_the_bundle_accepts_the_server(tmp_path: Path, host: str) -> None:
    certificates = Certificates(tmp_path / "certificates")
    folder = certificates.ensure()
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    client_context = ssl.create_default_context(cadata=base64.b64decode(certificates.bundle()).decode())
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with server_context.wrap_socket(connection, server_side=True) as tls_socket:
                tls_socket.sendall(b"well")

        thread = threading.Thread(target=serve)
        thread.start()
        with (
            socket.create_connection(listener.getsockname()) as client_socket,
            client_context.wrap_socket(client_socket, server_hostname=host) as tls_socket,
        ):
            assert tls_socket.recv(10) == b"well"
        thread.join()


def test_the_key_is_redacted_as_a_secret(tmp_path: Path) -> None:
    key = (Certificates(tmp_path / "certificates").ensure() / "tls.key").read_bytes()
    der = base64.b64decode(b"".join(key.splitlines()[1:-1]))
    assert credentials.redact(f"key {der.hex()}!") == "key REDACTED!"


@pytest.mark.timeout(20)
def test_a_pipe_in_place_of_the_key_is_not_read(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    (certificates.ensure() / "tls.key").unlink()
    os.mkfifo(tmp_path / "certificates" / "tls.key")
    certificates.ensure()


def test_files_are_private_and_created_once(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    first_bundle = certificates.bundle()
    assert Certificates(tmp_path / "certificates").bundle() == first_bundle
    for name in ("tls.key", "tls.crt", "ca.crt"):
        assert stat.S_IMODE((tmp_path / "certificates" / name).stat().st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "certificates").iterdir()) == ["ca.crt", "tls.crt", "tls.key"]
