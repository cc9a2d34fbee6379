"""Tests that secrets that the suite has issued are recognized in the output of a program in any form, and that other
texts are not mistaken for secrets."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from conformance import credentials, known_secrets
from conformance.evidence import bundle

_EC_KEY, _RSA_KEY = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)
_OTHER_KEY = rsa.generate_private_key(65537, 2048)


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, form: PrivateFormat = PrivateFormat.PKCS8) -> bytes:
    return key.private_bytes(Encoding.PEM, form, NoEncryption())


def kubeconfig(key: bytes) -> bytes:
    user = {"client-key-data": base64.b64encode(key).decode()}
    return yaml.safe_dump({"users": [{"name": "a", "user": user}]}).encode()


@pytest.fixture(autouse=True, scope="module")
def _learned_secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make the suite learn the secrets in a kubeconfig with a key, and another key."""
    secrets_before = (
        set(known_secrets._secrets),
        {kind: set(windows) for kind, windows in known_secrets._windows.items()},
    )
    path = tmp_path_factory.mktemp("learnt") / "kubeconfig"
    path.write_bytes(kubeconfig(pem(_EC_KEY)))
    known_secrets.learn_kubeconfig(path)
    known_secrets.learn_key(pem(_RSA_KEY))
    yield
    known_secrets._secrets, known_secrets._windows = secrets_before


def with_prefixes(lines: list[str]) -> str:
    return "\n".join(f"I1129 10:00:{n % 60:02d}.123456 4711 main.go:42] key {line}" for n, line in enumerate(lines))


def split_text(text: str, width: int) -> list[str]:
    return [text[offset : offset + width] for offset in range(0, len(text), width)]


def _key_body(key: bytes) -> str:
    return "".join(key.decode().splitlines()[1:-1])


LOG_FORMS: dict[str, Callable[[bytes], str]] = {
    "a prefix before each line": lambda key: with_prefixes(key.decode().splitlines()),
    "lines of JSON": lambda key: "\n".join(json.dumps({"ts": 1.5, "m": line}) for line in key.decode().splitlines()),
    "lines without the first and the last one": lambda key: with_prefixes(key.decode().splitlines()[1:-1]),
    "without its last line": lambda key: with_prefixes(key.decode().splitlines()[:-1]),
    "a list": lambda key: json.dumps(key.decode().splitlines()),
    "a string with escapes": lambda key: json.dumps(key.decode()),
    "hexadecimal": lambda key: key.hex(),
    "hexadecimal of DER": lambda key: base64.b64decode(_key_body(key)).hex().upper(),
    "hexadecimal with colons": lambda key: base64.b64decode(_key_body(key)).hex(":"),
    "hexadecimal bytes": lambda key: " ".join(f"0x{byte:02x}," for byte in base64.b64decode(_key_body(key))),
    "lines of hexadecimal": lambda key: with_prefixes(split_text(base64.b64decode(_key_body(key)).hex(":"), 45)),
    "base64 of PEM": lambda key: base64.b64encode(key).decode(),
    "base64 of base64 of PEM": lambda key: base64.b64encode(base64.b64encode(key)).decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(key).decode(),
    "DER in base64": _key_body,
    "lines of base64 of a kubeconfig": lambda key: with_prefixes(
        split_text(base64.b64encode(kubeconfig(key)).decode(), 76)
    ),
    "short lines": lambda key: with_prefixes(split_text(_key_body(key), 10)),
    "short lines without a prefix": lambda key: "\n".join(split_text(_key_body(key), 7)),
    "short pieces in JSON": lambda key: json.dumps(split_text(_key_body(key), 9)),
    "numbers": lambda key: str(list(key)),
    "numbers as Go writes them": lambda key: str(list(base64.b64decode(_key_body(key)))).replace(",", ""),
    "bytes as Python writes them": lambda key: str(base64.b64decode(_key_body(key))),
}


@pytest.mark.parametrize("form", LOG_FORMS)
@pytest.mark.parametrize("key_format", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("key", [_EC_KEY, _RSA_KEY], ids=["ec", "rsa"])
def test_a_known_key_is_not_in_a_log(
    tmp_path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, key_format: PrivateFormat, form: str
) -> None:
    printed_key = LOG_FORMS[form](pem(key, key_format))
    log = tmp_path / "operator.log"
    log.write_text(f"begin\n{printed_key}\nend\n")
    bundle.copy_log(log, 0, copy := tmp_path / "copy.log")
    copied_log = copy.read_bytes()
    assert not known_secrets.has_scattered_secret(copied_log) and not known_secrets.has_scattered_secret(
        credentials.redact_bytes(copied_log)
    )
    assert b"(operator.log is withheld: " in copied_log or (
        copied_log.startswith(b"begin\n") and copied_log.endswith(b"\nend\n")
    )
    assert (
        _private_number(key) not in copied_log.hex()
        and base64.b64encode(pem(key, key_format))[120:160] not in copied_log
    )


def _private_number(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    numbers = key.private_numbers()
    secret = numbers.private_value if isinstance(numbers, ec.EllipticCurvePrivateNumbers) else numbers.d
    return f"{secret:064x}"[8:40]


def test_a_log_with_a_key_in_pieces_is_withheld_in_one_line() -> None:
    printed_key = LOG_FORMS["short lines"](pem(_EC_KEY)).encode()
    line = b"(operator.log is withheld: it contains a private key or a token in pieces)\n"
    assert credentials.redact_log(printed_key, "operator.log") == line


@pytest.mark.parametrize("form", ["a prefix before each line", "lines of JSON", "without its last line"])
def test_any_private_key_is_removed_with_the_prefixes_of_its_lines(form: str) -> None:
    printed_key = f"begin\n{LOG_FORMS[form](pem(_OTHER_KEY))}\nthe end, all is well\n".encode()
    redacted = credentials.redact_log(printed_key, "operator.log")
    assert redacted.startswith(b"begin\n") and redacted.endswith(b"the end, all is well\n")
    assert not [line for line in pem(_OTHER_KEY).splitlines()[1:-2] if line in redacted]


def log_without_secrets() -> bytes:
    """Return a log without secrets, but with certificates of the keys in several forms, hashes, and other data in
    base64."""
    random_source, now = random.Random(7), datetime.datetime(2026, 11, 29, tzinfo=datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
    lines = list[str]()
    for key in (_EC_KEY, _RSA_KEY):
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(1))
        certificate = builder.sign(key, hashes.SHA256())
        text = certificate.public_bytes(Encoding.PEM)
        user = {"client-certificate-data": base64.b64encode(text).decode()}
        lines += [text.decode(), with_prefixes(text.decode().splitlines())]
        lines += [yaml.safe_dump(user), text.hex(), certificate.public_bytes(Encoding.DER).hex(":"), str(list(text))]
    lines += [f"sha256:{hashlib.sha256(str(n).encode()).hexdigest()} {n}" for n in range(2000)]
    lines += [base64.b64encode(random_source.randbytes(300)).decode() for _ in range(500)]
    lines += [
        json.dumps({"ts": random_source.random(), "data": base64.b64encode(b"a: b\n" * n).decode()}) for n in range(99)
    ]
    return "\n".join(lines).encode()


def test_a_log_without_secrets_is_not_changed() -> None:
    log = log_without_secrets()
    assert credentials.redact_log(log, "operator.log") == log
    assert credentials.redact_bytes(log) == log


@pytest.mark.parametrize("form", LOG_FORMS)
def test_redacted_json_remains_valid(form: str) -> None:
    value = {
        "seen": LOG_FORMS[form](pem(_EC_KEY)),
        "\n" + _key_body(pem(_EC_KEY)): ["\u0001" + _key_body(pem(_EC_KEY)), 12345678901234567890],
    }
    for line in (orjson.dumps(value), json.dumps(value).encode()):
        redacted = json.loads(credentials.redact_bytes(line))
        assert redacted.keys() == {"seen", "\nREDACTED"} or "seen" in redacted
        assert 12345678901234567890 in next(value for key, value in redacted.items() if key != "seen")


def test_a_token_is_recognized_by_its_signature(tmp_path: Path) -> None:
    signature = base64.urlsafe_b64encode(random.Random(1).randbytes(256)).decode().rstrip("=")
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump({"users": [{"name": "a", "user": {"token": f"eyJhbGciOiJ9.eyJpc3MiOiJ.{signature}"}}]})
    )
    known_secrets.learn_kubeconfig(path)
    for form in (signature[60:90], signature.encode().hex(), base64.b64encode(signature.encode()).decode()):
        assert credentials.redact(f"it is {form} !") == "it is REDACTED !"


@pytest.mark.parametrize("content", ["", "users: 1", "users: [{user: {client-key-data: x}}]", "[" * 9999, "a: [", "\0"])
def test_an_invalid_kubeconfig_is_not_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "kubeconfig").write_text(content)
    known_secrets.learn_kubeconfig(tmp_path / "kubeconfig")


@pytest.mark.parametrize("size", [1 << 20, 4 << 20])
@pytest.mark.parametrize(
    "piece",
    [
        b"x",
        b"-----BEGIN PRIVATE KEY-----\n",
        b"-----BEGIN PRIVATE KEY-----" + b"a/" * 300 + b"\n",
        b"1 ",
        b"a" * 39 + b"\n",
    ],
)
def test_the_time_is_proportional_to_the_size_of_the_log(piece: bytes, size: int) -> None:
    log = (piece * (size // len(piece) + 1))[:size]
    start = time.process_time()
    credentials.redact_log(log, "operator.log")
    assert time.process_time() - start < 4 * (size >> 20)
