"""Tests that each reader of external files returns a value or raises a one-line error within a short time, for any
content of the file."""

from __future__ import annotations

import ast
import contextlib
import gzip
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance import bounded, documents
from conformance.cluster import chosen_kubeconfig, policies
from conformance.errors import UsageError
from conformance.history import storage
from conformance.implementation import expectations, installation, loading
from conformance.lab import results as lab
from conformance.nemesis import campaign
from conformance.nemesis import results as plans
from conformance.nemesis.changes import results as changes
from conformance.publishing import published, verification
from conformance.report import comparison, reading, recorded
from conformance.run import rerun
from conformance.scale import results as scale
from conformance.scale import scenario, upstream
from conformance.suite.outcomes import ledger_file
from conformance.suite.registry import requirement

PROJECT = Path(documents.__file__).parent


def _in_folder(name: str, read: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return a reader that copies a file to `name` in a new folder and then reads the folder."""

    def read_in_folder(path: Path) -> object:
        folder = path.parent / "folder"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(path.read_bytes())
        return read(folder)

    return read_in_folder


def _load_packed(path: Path) -> object:
    packed_path = path.with_suffix(".gz")
    packed_path.write_bytes(gzip.compress(path.read_bytes()))
    return storage.load(packed_path)


def _choose_kubeconfig(path: Path) -> object:
    with chosen_kubeconfig.choose(path, "") as kubeconfig:
        return kubeconfig


READERS: dict[str, Callable[[Path], object]] = {
    "report": reading.load,
    "recorded runs": recorded.read,
    "published reports": _in_folder("a.yaml", published.read),
    "descriptor": loading.validate,
    "expected failures": lambda path: expectations.read(path, "--baseline"),
    "manifests": lambda path: installation.read_manifests(path, installation.text(path), ("ConfigMap",)),
    "policies": policies.read,
    "scale scenario": scenario.read,
    "plan": plans.read_plan,
    "changes": changes.is_changes_file,
    "kubeconfig": _choose_kubeconfig,
    "ledger": _in_folder("run.jsonl", lambda folder: list(ledger_file.read(folder))),
    "history": storage.load,
    "packed history": _load_packed,
    "settings of a run": _in_folder("run.json", lambda folder: rerun.settings_of(str(folder), folder)),
    "journal of a campaign": campaign.Journal,
    "result of the lab": lab.load,
    "result of a scale run": scale.read,
    "runs of upstream": lambda path: list(upstream.history(path)),
}

ALIAS_BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))
HOSTILE_CONTENTS = {
    "nothing": b"",
    "no UTF-8": b"a: \xff\xfe\n",
    "NUL": b'a: "x\\0y"\n\0',
    "an alias bomb": ALIAS_BOMB.encode(),
    "an alias to itself": b"a: &a [*a]\n",
    "a key that is an alias to its mapping": b"&a {? *a : 1}\n",
    "brackets": b"[" * 400_000,
    "braces": b'{"a":' * 400_000,
    "500 levels": b"a: " + b"[" * 500 + b"]" * 500,
    "1,200 levels": b'{"kind":' + b'{"a":' * 1_200 + b"{}" + b"}" * 1_201 + b"\n",
    "3,000 levels": b'{"at":' + b"[" * 3_000 + b"]" * 3_000 + b"}\n",
    "block levels": b"\n".join(b" " * n + b"a:" for n in range(900)),
    "a day of no calendar": b"a: 2027-13-45\n",
    "a moment of no clock": b"a: 2027-01-01T00:00:00+99:99\n",
    "no bool": b"a: !!bool maybe\n",
    "no moment": b"a: !!timestamp x\n",
    "no number": b'a: !!int ""\nb: !!float ""\n',
    "bytes": b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata: !!binary aGVsbG8=\n",
    "a set": b"a: !!set {b, c}\n? 1\n",
    "a tag of Python": b"a: !!python/object/apply:os.system [ls]\n",
    "5,000 digits": b"a: " + b"9" * 5_000,
    "a huge number": b"kind: ConfigMap\nmetadata: {name: a}\na: 0x" + b"f" * 9_000,
    "a number of base 60": b"a: 1" + b":59" * 200_000,
    "a number beyond doubles": b'{"at": 1e999}\n',
    "many values": b"a: [" + b"1," * 1_200_000 + b"]",
    "two documents": b"a: 1\n---\n",
    "a merge bomb": b"a0: &a0 {x: 1}\n"
    + b"".join(b"a%d: &a%d {<<: [%s]}\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 40)),
}
MAX_CPU_SECONDS = 60
"""Maximum CPU time in seconds for reading a file. A busy machine is slow, but an alias bomb would take years."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.yaml"


def assert_reading_ends(read: Callable[[Path], object], path: Path) -> None:
    """Assert that reading ends within a short time, without an error or with a one-line error."""
    start = time.process_time()
    try:
        read(path)
    except UsageError as error:
        assert "\n" not in str(error) and len(str(error)) < 2_000 and error.exit_code == 4
    assert time.process_time() - start < MAX_CPU_SECONDS


@pytest.mark.parametrize("content", HOSTILE_CONTENTS.values(), ids=HOSTILE_CONTENTS)
def test_each_reader_returns_a_value_or_raises_a_one_line_error(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for read in READERS.values():
        assert_reading_ends(read, path)


@pytest.mark.parametrize("content", HOSTILE_CONTENTS.values(), ids=HOSTILE_CONTENTS)
def test_a_file_that_starts_like_a_report_is_rejected(path: Path, content: bytes) -> None:
    path.write_bytes(b"kind: ConformanceReport\nextra:\n  " + content.replace(b"\n", b"\n  "))
    for read in (reading.load, recorded.read):
        with pytest.raises(UsageError):
            read(path)
        assert_reading_ends(read, path)


REPORT_SNAPSHOT = (Path(__file__).parent / "report" / "report.snapshot.yaml").read_text("utf-8")


@pytest.mark.parametrize("content", HOSTILE_CONTENTS.values(), ids=HOSTILE_CONTENTS)
def test_a_report_with_hostile_content_is_verified_or_refused(path: Path, content: bytes) -> None:
    """The schema permits any value as the expected value of a check."""
    with contextlib.suppress(UnicodeDecodeError):
        text = content.decode().replace("\n", "\n          ")
        path.write_text(REPORT_SNAPSHOT.replace("      expected: ", f"      expected:\n          {text}\n#", 1))
        assert_reading_ends(verify_report, path)


def verify_report(path: Path) -> object:
    content = reading.load(path)
    return verification.verify(content, path.parent, requirement.load(), ""), comparison.compared_report(content, "a")


def test_a_report_with_too_many_values_is_refused(path: Path) -> None:
    header, entry = b"kind: ConformanceReport\nverdict:\n  requirements:\n", b"  - {id: CORE-001, tests: [a, b]}\n"
    path.write_bytes(header + entry * 100_000)
    start = time.process_time()
    with pytest.raises(UsageError, match="has more than 300,000 values — make it smaller"):
        reading.load(path)
    assert time.process_time() - start < MAX_CPU_SECONDS


FILE_PIECES = st.sampled_from(
    """a:_ -_ { } [ ] , \n __ &a_ *a !!int_ !!set_ !!binary_ " ?_ <<:_ 2027-02-30 0x1f 1:2 .nan ~ ---\n |\n \\ \0 kind:_
    ConformanceReport\n apiVersion:_conformance.grove.io/v1alpha1\n {"kind":"RunStarted"}\n null 1"""
    # Spaces separate the pieces, so a space within a piece is written as an underscore.
    .replace("\n    ", " ")
    .replace("_", "\1")
    .split(" ")
).map(lambda piece: piece.replace("\1", " ").encode())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FILE_PIECES | st.binary(max_size=4), max_size=25).map(b"".join))
def test_no_other_exception_is_raised_for_any_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for read in READERS.values():
        with contextlib.suppress(UsageError):
            read(path)


@settings(max_examples=200, deadline=None)
@given(st.lists(FILE_PIECES | st.binary(max_size=4), max_size=25).map(b"".join))
def test_accepted_values_can_be_written_as_json(content: bytes) -> None:
    with contextlib.suppress(UsageError, UnicodeDecodeError):
        orjson.dumps(documents.parse_report(Path("a"), content.decode()))
    with contextlib.suppress(UsageError):
        orjson.dumps(bounded.json(content, "a"))


DECODING_MODULES = {
    "the gate, or its user with a decoder of its own": """
        bounded documents history/storage nemesis/campaign nemesis/proxy/events nemesis/corruption nemesis/watching
        suite/outcomes/ledger_file suite/settings cluster/audit cluster/audit_bodies cluster/identities
        known_secrets suite/scenes/pod_statuses suite/session/mutators cluster/annotations""",
    "answers of the API server, which its client has bounded, and what was recorded of them": """
        cluster/abilities cluster/addons/metrics cluster/addons/provisioner cluster/existing/claim
        cluster/existing/kwok_stages cluster/existing/leftovers cluster/existing/marks cluster/existing/other_scheduler
        cluster/gpu_failures cluster/preflight history/record history/recorder history/redaction implementation/deployed
        implementation/discovery implementation/installation implementation/objects implementation/rights nemesis/bed
        nemesis/normal_form scale/play scale/replay scale/tracker scale/write_floor suite/scenes/api
        suite/scenes/dry_run suite/session/admitted suite/session/existing suite/session/foreign
        suite/session/new_kinds""",
    "files and messages that this program has written": """
        cluster/assets cluster/capture/fleet cluster/compute_domains cluster/gpu_devices cluster/kubelet_sim/process
        cluster/stages cluster/state document_cache nemesis/changes/desired nemesis/proxy/front report/document
        scale/compare/session suite/registry/basis suite/session/collected suite/session/shared
        tests/core/published_sets""",
    "answers of components that this program has started, or of a chosen site": """
        cluster/etcd_keys cluster/health cluster/transfer""",
}
"""All modules that use a library to decode YAML or JSON, by the kind of data that they decode."""


def test_all_decoders_are_known() -> None:
    """A module that decodes YAML or JSON directly must not read external files, unless it is the gate."""
    decoding_files = {path.relative_to(PROJECT).as_posix() for path in PROJECT.rglob("*.py") if _decodes(path)}
    assert decoding_files == {f"{name}.py" for names in DECODING_MODULES.values() for name in names.split()}


_DECODER_NAMES = ("load", "safe_load", "decode", "Decoder", "compose", "parse")


def _decodes(path: Path) -> bool:
    """Return whether a module uses a library to decode YAML or JSON."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr.startswith(_DECODER_NAMES):
            text = ast.unparse(node)
            if text.endswith(("json.loads", "json.load", "json.decode", "json.Decoder", "yaml.decode")) or (
                text.startswith("yaml.") and text[5:].startswith(_DECODER_NAMES)
            ):
                return True
    return False
