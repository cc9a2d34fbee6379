"""Tests that secrets which the suite has handed out are recognized in the output of a program in any form, and nothing
else is."""

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

_EC, _RSA = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)
_OTHER = rsa.generate_private_key(65537, 2048)


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, form: PrivateFormat = PrivateFormat.PKCS8) -> bytes:
    return key.private_bytes(Encoding.PEM, form, NoEncryption())


def kubeconfig(key: bytes) -> bytes:
    user = {"client-key-data": base64.b64encode(key).decode()}
    return yaml.safe_dump({"users": [{"name": "a", "user": user}]}).encode()


@pytest.fixture(autouse=True, scope="module")
def _learnt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make the suite learn the secrets of a kubeconfig with a key, and another key."""
    before = set(known_secrets._secrets), {kind: set(windows) for kind, windows in known_secrets._windows.items()}
    path = tmp_path_factory.mktemp("learnt") / "kubeconfig"
    path.write_bytes(kubeconfig(pem(_EC)))
    known_secrets.learn_kubeconfig(path)
    known_secrets.learn_key(pem(_RSA))
    yield
    known_secrets._secrets, known_secrets._windows = before


def prefixed(lines: list[str]) -> str:
    return "\n".join(f"I1129 10:00:{n % 60:02d}.123456 4711 main.go:42] key {line}" for n, line in enumerate(lines))


def wrapped(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


def _body(key: bytes) -> str:
    return "".join(key.decode().splitlines()[1:-1])


FORMS: dict[str, Callable[[bytes], str]] = {
    "a prefix before each line": lambda key: prefixed(key.decode().splitlines()),
    "lines of JSON": lambda key: "\n".join(json.dumps({"ts": 1.5, "m": line}) for line in key.decode().splitlines()),
    "lines without the first and the last one": lambda key: prefixed(key.decode().splitlines()[1:-1]),
    "without its last line": lambda key: prefixed(key.decode().splitlines()[:-1]),
    "a list": lambda key: json.dumps(key.decode().splitlines()),
    "a string with escapes": lambda key: json.dumps(key.decode()),
    "hexadecimal": lambda key: key.hex(),
    "hexadecimal of DER": lambda key: base64.b64decode(_body(key)).hex().upper(),
    "hexadecimal with colons": lambda key: base64.b64decode(_body(key)).hex(":"),
    "hexadecimal bytes": lambda key: " ".join(f"0x{byte:02x}," for byte in base64.b64decode(_body(key))),
    "lines of hexadecimal": lambda key: prefixed(wrapped(base64.b64decode(_body(key)).hex(":"), 45)),
    "base64 of PEM": lambda key: base64.b64encode(key).decode(),
    "base64 of base64 of PEM": lambda key: base64.b64encode(base64.b64encode(key)).decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(key).decode(),
    "DER in base64": _body,
    "lines of base64 of a kubeconfig": lambda key: prefixed(wrapped(base64.b64encode(kubeconfig(key)).decode(), 76)),
    "short lines": lambda key: prefixed(wrapped(_body(key), 10)),
    "short lines without a prefix": lambda key: "\n".join(wrapped(_body(key), 7)),
    "short pieces in JSON": lambda key: json.dumps(wrapped(_body(key), 9)),
    "numbers": lambda key: str(list(key)),
    "numbers as Go writes them": lambda key: str(list(base64.b64decode(_body(key)))).replace(",", ""),
    "bytes as Python writes them": lambda key: str(base64.b64decode(_body(key))),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("key", [_EC, _RSA], ids=["ec", "rsa"])
def test_a_known_key_is_not_in_a_log(
    tmp_path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, kind: PrivateFormat, form: str
) -> None:
    printed = FORMS[form](pem(key, kind))
    log = tmp_path / "operator.log"
    log.write_text(f"begin\n{printed}\nend\n")
    bundle.copy_log(log, 0, copy := tmp_path / "copy.log")
    copied = copy.read_bytes()
    assert not known_secrets.scattered(copied) and not known_secrets.scattered(credentials.words(copied))
    assert b"(operator.log is withheld: " in copied or (copied.startswith(b"begin\n") and copied.endswith(b"\nend\n"))
    assert _numbers(key) not in copied.hex() and base64.b64encode(pem(key, kind))[120:160] not in copied


def _numbers(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    numbers = key.private_numbers()
    secret = numbers.private_value if isinstance(numbers, ec.EllipticCurvePrivateNumbers) else numbers.d
    return f"{secret:064x}"[8:40]


def test_a_log_with_a_key_in_pieces_is_withheld_in_one_line() -> None:
    printed = FORMS["short lines"](pem(_EC)).encode()
    line = b"(operator.log is withheld: it contains a private key or a token in pieces)\n"
    assert credentials.log(printed, "operator.log") == line


@pytest.mark.parametrize("form", ["a prefix before each line", "lines of JSON", "without its last line"])
def test_any_private_key_is_removed_with_the_prefixes_of_its_lines(form: str) -> None:
    printed = f"begin\n{FORMS[form](pem(_OTHER))}\nthe end, all is well\n".encode()
    redacted = credentials.log(printed, "operator.log")
    assert redacted.startswith(b"begin\n") and redacted.endswith(b"the end, all is well\n")
    assert not [line for line in pem(_OTHER).splitlines()[1:-2] if line in redacted]


def honest() -> bytes:
    """Return output without secrets: certificates of the keys in several forms, hashes, and other data in base64."""
    chance, now = random.Random(7), datetime.datetime(2026, 11, 29, tzinfo=datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
    lines = list[str]()
    for key in (_EC, _RSA):
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(1))
        certificate = builder.sign(key, hashes.SHA256())
        text = certificate.public_bytes(Encoding.PEM)
        user = {"client-certificate-data": base64.b64encode(text).decode()}
        lines += [text.decode(), prefixed(text.decode().splitlines())]
        lines += [yaml.safe_dump(user), text.hex(), certificate.public_bytes(Encoding.DER).hex(":"), str(list(text))]
    lines += [f"sha256:{hashlib.sha256(str(n).encode()).hexdigest()} {n}" for n in range(2000)]
    lines += [base64.b64encode(chance.randbytes(300)).decode() for _ in range(500)]
    lines += [json.dumps({"ts": chance.random(), "data": base64.b64encode(b"a: b\n" * n).decode()}) for n in range(99)]
    return "\n".join(lines).encode()


def test_an_honest_log_stays_as_it_is() -> None:
    log = honest()
    assert credentials.log(log, "operator.log") == log
    assert credentials.words(log) == log


@pytest.mark.parametrize("form", FORMS)
def test_json_stays_json(form: str) -> None:
    value = {"seen": FORMS[form](pem(_EC)), "\n" + _body(pem(_EC)): ["\u0001" + _body(pem(_EC)), 12345678901234567890]}
    for line in (orjson.dumps(value), json.dumps(value).encode()):
        redacted = json.loads(credentials.words(line))
        assert redacted.keys() == {"seen", "\nREDACTED"} or "seen" in redacted
        assert 12345678901234567890 in next(value for key, value in redacted.items() if key != "seen")


def test_a_token_is_known_by_its_signature(tmp_path: Path) -> None:
    signature = base64.urlsafe_b64encode(random.Random(1).randbytes(256)).decode().rstrip("=")
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump({"users": [{"name": "a", "user": {"token": f"eyJhbGciOiJ9.eyJpc3MiOiJ.{signature}"}}]})
    )
    known_secrets.learn_kubeconfig(path)
    for form in (signature[60:90], signature.encode().hex(), base64.b64encode(signature.encode()).decode()):
        assert credentials.text(f"it is {form} !") == "it is REDACTED !"


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
def test_the_time_is_proportional_to_the_log(piece: bytes, size: int) -> None:
    log = (piece * (size // len(piece) + 1))[:size]
    start = time.process_time()
    credentials.log(log, "operator.log")
    assert time.process_time() - start < 4 * (size >> 20)
