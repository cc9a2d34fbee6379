"""Modes of hostile.py that print a private key."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

from tests.attacks.helpers import mode


@mode
def print_kubeconfig(kubeconfig: Path, folder: Path) -> None:
    """Print the kubeconfig unchanged, in JSON and in base64."""
    content = kubeconfig.read_bytes()
    os.write(
        1, b"\n".join((content, json.dumps({"config": content.decode()}).encode(), base64.b64encode(content), b""))
    )


def read_private_key(kubeconfig: Path) -> bytes:
    """Return this program's private key in PEM, as its kubeconfig contains it."""
    [key] = re.findall(r"client-key-data: (\S+)", kubeconfig.read_text())
    return base64.b64decode(key)


@mode
def print_key_with_prefixes(kubeconfig: Path, folder: Path) -> None:
    """Print the private key line by line with a prefix, as a logger does, and also in hexadecimal and in base64."""
    key = read_private_key(kubeconfig)
    lines = b"".join(b"key: " + line + b"\n" for line in key.splitlines())
    der = base64.b64decode(b"".join(key.splitlines()[1:-1]))
    os.write(1, lines + b"\n".join((der.hex().encode(), base64.b64encode(der), base64.b64encode(key), b"")))


@mode
def print_key_in_pieces(kubeconfig: Path, folder: Path) -> None:
    """Print the private key in lines that are too short to be recognized one by one."""
    body = b"".join(read_private_key(kubeconfig).splitlines()[1:-1])
    os.write(1, b"".join(b"key: %s\n" % body[offset : offset + 10] for offset in range(0, len(body), 10)))


@mode
def print_key_as_a_list(kubeconfig: Path, folder: Path) -> None:
    """Print the private key as JSON: a list of its lines, and a list of its bytes."""
    key = read_private_key(kubeconfig)
    os.write(1, b"\n".join((json.dumps(key.decode().splitlines()).encode(), json.dumps(list(key)).encode(), b"")))
