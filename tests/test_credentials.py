"""Tests that tokens and private keys are removed from the output of programs within a short time."""

from __future__ import annotations

import base64
import json
import textwrap
import time

import orjson
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from conformance import credentials

_EC_KEY, _RSA_KEY = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)
PRIVATE_KEYS = {
    "ec": _EC_KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode(),
    "rsa": _RSA_KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode(),
    "pkcs8": _RSA_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
    "encrypted": _RSA_KEY.private_bytes(
        Encoding.PEM, PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(b"x")
    ).decode(),
}


def kubeconfig(key: str) -> dict[str, object]:
    data = base64.b64encode(key.encode()).decode()
    user = {"client-certificate-data": "LS0tLS1CRUdJTiBDRVJU", "client-key-data": data}
    return {"users": [{"name": "a", "user": user}], "clusters": [{"name": "c", "cluster": {"server": "https://x"}}]}


LOG_FORMS = {
    "as it is": lambda key: key,
    "its end alone": lambda key: key[key.rindex(":") + 70 if ":" in key else 40 :],
    "its beginning alone": lambda key: key[: len(key) - 60],
    "in JSON": lambda key: json.dumps({"key": key}),
    "in JSON in JSON": lambda key: json.dumps({"said": json.dumps({"key": key})}),
    "lines joined": lambda key: " | ".join(key.splitlines()),
    "in base64": lambda key: f"key={base64.b64encode(key.encode()).decode()};",
    "in broken base64": lambda key: base64.encodebytes(key.encode()).decode(),
    "a kubeconfig": lambda key: yaml.safe_dump(kubeconfig(key)),
    "a kubeconfig in JSON": lambda key: json.dumps(kubeconfig(key)),
    "a kubeconfig in base64": lambda key: base64.b64encode(yaml.safe_dump(kubeconfig(key)).encode()).decode(),
    "in base64 after other bytes": lambda key: base64.b64encode(b"xy" + key.encode()).decode(),
}


def secret_texts(key: str) -> list[str]:
    """Return the texts that must be removed: the lines of the key, in plain text and in base64."""
    lines = [line for line in key.splitlines()[1:-1] if len(line) > 32 and ":" not in line]
    encoded = base64.b64encode(key.encode()).decode()
    return [*lines, *textwrap.wrap(encoded, 76)[1:-1], encoded[80:140]]


@pytest.mark.parametrize("form", LOG_FORMS)
@pytest.mark.parametrize("key_type", PRIVATE_KEYS)
def test_a_private_key_is_removed_in_each_form(key_type: str, form: str) -> None:
    log = f"I1123 connecting with {LOG_FORMS[form](PRIVATE_KEYS[key_type])}\nnext line: all is well."
    if form == "its end alone":
        log = log.partition("with ")[2]
    for redacted in (credentials.redact(log), credentials.redact_bytes(log.encode()).decode()):
        assert not [part for part in secret_texts(PRIVATE_KEYS[key_type]) if part in redacted]
        assert "REDACTED" in redacted
        if form not in ("its beginning alone", "in broken base64", "a kubeconfig in base64", "its end alone"):
            assert redacted.endswith("next line: all is well.")


@pytest.mark.parametrize("form", LOG_FORMS)
def test_redacted_json_remains_valid(form: str) -> None:
    line = orjson.dumps({"seen": LOG_FORMS[form](PRIVATE_KEYS["ec"]), "next": 'a "quoted" word'})
    assert orjson.loads(credentials.redact_bytes(line))["next"] == 'a "quoted" word'
    truncated_line = orjson.dumps({"seen": PRIVATE_KEYS["ec"][:60] + '"; it ended'})
    assert "it ended" in orjson.loads(credentials.redact_bytes(truncated_line))["seen"]


@pytest.mark.parametrize(
    "harmless_text",
    [
        "eyJhbGciOi",
        "a.b.c",
        "eyJ.eyJ.x",
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJ",  # a certificate
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "the PRIVATE KEY-----",
        "client-key: /path",
        "",
    ],
)
def test_texts_that_are_not_credentials_remain(harmless_text: str) -> None:
    assert (
        credentials.redact(harmless_text) == harmless_text
        and credentials.redact_bytes(harmless_text.encode()) == harmless_text.encode()
    )


@pytest.mark.parametrize(
    "piece",
    ["eyJ", "eyJaaaaaaaa.", "-----BEGIN PRIVATE KEY-----", "PRIVATE KEY-----", "UFJJVkFURSBLRVk", "client-key-data"],
)
def test_the_time_does_not_grow_faster_than_the_text(piece: str) -> None:
    hostile_text = (piece * (1 << 20))[: 1 << 20].encode() + b" eyJ PRIVATE KEY----- UFJJVkFURSBLRVkt client-key-data"
    start = time.process_time()
    credentials.redact_bytes(hostile_text)
    assert time.process_time() - start < 10  # with quadratic time, it would take hours
