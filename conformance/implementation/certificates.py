"""Serving certificates for webhooks on loopback: one authority and one certificate per folder, created once."""

from __future__ import annotations

import base64
import os
from contextlib import suppress
from pathlib import Path

from conformance import known_secrets, regular

MAX_BYTES = 1 << 16
"""Maximum number of bytes that are read of a certificate or key."""


class Certificates:
    """`tls.crt`, `tls.key` and `ca.crt` (PEM) in `directory`, for 127.0.0.1, ::1 and localhost.

    The authority's key is never written, so nothing else can be signed with it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def ensure(self) -> Path:
        """Create the files unless they exist. Return the folder."""
        if not (self.directory / "ca.crt").exists():
            self._create_files()
        with suppress(OSError):  # a program has removed the file
            known_secrets.learn_key(regular.OpenFile(self.directory / "tls.key").at(0, MAX_BYTES))
        return self.directory

    def bundle(self) -> str:
        """Return the authority's certificate for `clientConfig.caBundle`: the PEM text in base64."""
        return base64.b64encode(regular.OpenFile(self.ensure() / "ca.crt").at(0, MAX_BYTES)).decode()

    def _create_files(self) -> None:
        from conformance.implementation import issuing

        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        key_pair = issuing.issue()
        write_private(self.directory / "tls.key", key_pair.key)
        write_private(self.directory / "tls.crt", key_pair.certificate)
        write_private(self.directory / "ca.crt", key_pair.authority)  # last: it shows that all files exist


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user can read (mode 0600 from the start), completely or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    temporary.rename(path)
