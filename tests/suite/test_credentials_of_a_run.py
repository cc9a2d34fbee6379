"""Tests that credentials in the output of a test appear neither in the files of the run nor on the terminal."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from faked import Faked

from conformance import cli
from conformance.errors import UsageError

KEY = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
PRINTED = f"users: client-key-data: {base64.b64encode(KEY.encode()).decode()} and\n{KEY}"
PARTS = (KEY.splitlines()[1], base64.b64encode(KEY.encode()).decode()[60:120])


def test_no_output_of_a_run_has_a_private_key(faked: Faked) -> None:
    (faked.folder / "printed.txt").write_text(PRINTED)
    faked.write(
        """
        from pathlib import Path

        from conformance.errors import HarnessError
        from conformance.suite.outcomes.checks import Blocked

        PRINTED = Path(__file__, "../../printed.txt").resolve().read_text()

        @requirements("AA-001")
        def test_one(case):
            case.until("AA-001", "x", PRINTED)

        @requirements("AA-002")
        def test_two(case):
            raise Blocked(PRINTED, "implementation")

        @requirements("AA-003")
        def test_three(case):
            raise HarnessError(PRINTED)

        @requirements("AA-004")
        def test_four(case):
            raise ValueError(PRINTED)

        @requirements("AA-005")
        def test_five(case):
            raise Blocked(PRINTED, "circumstances")
        """,
        ids=5,
    )
    result = faked.run(workers=1, verbose=True)
    assert len(result.outcomes) == 5
    texts = {"terminal": result.out + result.err}
    for path in result.folder.rglob("*"):
        if path.is_file() and path.name != "run.json":
            texts[str(path.relative_to(result.folder))] = path.read_text(errors="replace")
    assert {"report.yaml", "junit.xml", "ledger/run.jsonl"} <= texts.keys()
    leaks = [(name, text[: text.index(part)][-300:]) for name, text in texts.items() for part in PARTS if part in text]
    assert not leaks, leaks


def test_an_error_of_a_command_has_no_private_key(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        raise UsageError(PRINTED)

    cli.run(command)
    output = capsys.readouterr().err
    assert "REDACTED" in output and not [part for part in PARTS if part in output]
