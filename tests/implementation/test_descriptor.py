"""Tests that a descriptor is either loaded, or rejected in one line that names the mistake, its location and its
correction."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from conformance.errors import Exit, UsageError
from conformance.grove.kinds import LEASE
from conformance.implementation import deployment, globs, loading
from conformance.implementation.descriptor import Descriptor, Role
from conformance.suite.session import watched
from kube.resource import LEASES

VALID_DESCRIPTOR = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: mine
version: "1.2"
roles: [operator]
features: [hpa]
schedulerName: mine-scheduler
parameters:
  binary: {description: the operator's binary, kind: path}
  level: {description: log level, default: info}
install:
  crds: [crds]
processes:
  operator:
    argv: ["${set.binary}", "--config=${file.c.yaml}", ["--level", "${set.level}"]]
    files: {c.yaml: "port: ${port.health}"}
    ready: {http: "http://127.0.0.1:${port.health}/readyz"}
expectedFailures:
- {id: CORE-001, reason: not done yet, expires: 2027-01-31}
"""
DESCRIPTOR_HEAD = VALID_DESCRIPTOR[: VALID_DESCRIPTOR.index("install:")]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Descriptor]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/b.yaml").write_text("b")
    (tmp_path / "crds/a.yaml").write_text("a")
    (tmp_path / "crds/readme.txt").write_text("no")
    binary = tmp_path / "operator"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)

    def load(text: str = VALID_DESCRIPTOR, settings: dict[str, str] | None = None, **options: object) -> Descriptor:
        (tmp_path / "mine.yaml").write_text(text)
        return loading.load("./mine.yaml", {"binary": "operator"} if settings is None else settings, **options)

    return load


def error_message(load: Callable[..., Descriptor], *arguments: object, **options: object) -> str:
    with pytest.raises(UsageError) as caught:
        load(*arguments, **options)
    assert caught.value.exit_code == Exit.USAGE
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_a_valid_descriptor_is_loaded(load, tmp_path: Path) -> None:
    descriptor = load()
    assert (descriptor.name, descriptor.version, descriptor.scheduler_name, descriptor.start) == (
        "mine",
        "1.2",
        "mine-scheduler",
        "processes",
    )
    assert descriptor.roles == {Role.OPERATOR}
    assert descriptor.features == {"hpa"}
    assert descriptor.settings == {"binary": str(tmp_path / "operator"), "level": "info"}
    assert descriptor.manifests("crds") == [tmp_path / "crds/a.yaml", tmp_path / "crds/b.yaml"]
    (expected,) = descriptor.expected_failures
    assert (expected.id, expected.expires) == ("CORE-001", datetime.date(2027, 1, 31))
    assert not expected.has_expired(datetime.date(2027, 1, 30))
    assert expected.has_expired(datetime.date(2027, 1, 31))


UPGRADES_FIELD = """\
upgrades:
- {name: old, about: the old one, set: {level: "${set.level}-old"}, libraries: "0.34"}
"""


def test_an_earlier_version_differs_only_in_its_parameters(load) -> None:
    descriptor = load(VALID_DESCRIPTOR + UPGRADES_FIELD, {"binary": "operator", "level": "debug"})
    (upgrade,) = descriptor.upgrades
    earlier_version = descriptor.earlier(upgrade)
    assert earlier_version.settings == {**descriptor.settings, "level": "debug-old"}
    assert earlier_version.processes == descriptor.processes


@pytest.mark.parametrize(
    ("invalid_fields", "expected_text"),
    [
        ("set: {levle: x}", 'unknown parameter "levle"'),
        ('set: {level: "${set.levle}"}', "levle"),
        ("set: {}", "set"),
        ('set: {level: x}, libraries: "0.33"', "libraries"),
    ],
)
def test_an_invalid_earlier_version_is_refused(load, invalid_fields: str, expected_text: str) -> None:
    line = error_message(load, f"{VALID_DESCRIPTOR}upgrades:\n- {{name: old, about: old, {invalid_fields}}}\n")
    assert "upgrades" in line
    assert expected_text in line


def test_two_earlier_versions_with_the_same_name_are_refused(load) -> None:
    line = error_message(load, VALID_DESCRIPTOR + UPGRADES_FIELD + UPGRADES_FIELD.partition("\n")[2])
    assert "old is a duplicate" in line


@pytest.mark.parametrize(
    ("process_field", "message"),
    [
        ('env: {"A=B": x}', '"A=B" has the wrong form — the name of a variable, without ='),
        ('env: {"": x}', '"" has the wrong form — the name of a variable, without ='),
        ('env: {A: "x\\0"}', "env.A: holds a NUL character — remove it"),
        ("stop: {grace: .inf}", "stop.grace: is not a finite number: inf"),
        ("stop: {grace: 1.0e+300}", "stop.grace: 1e+300 is greater than the maximum of 3600"),
    ],
)
def test_values_that_no_process_can_be_given_are_refused(load, process_field: str, message: str) -> None:
    assert message in error_message(load, VALID_DESCRIPTOR.replace("    ready:", f"    {process_field}\n    ready:"))


def test_the_scheduler_name_may_be_a_parameter(load) -> None:
    text = VALID_DESCRIPTOR.replace("schedulerName: mine-scheduler", "schedulerName: ${set.level}")
    assert load(text).scheduler_name == "info"
    assert 'mine.yaml:7: schedulerName: "No" has the wrong form' in error_message(
        load, text, {"binary": "operator", "level": "No"}
    )


def test_the_version_may_be_a_parameter(load) -> None:
    text = VALID_DESCRIPTOR.replace('version: "1.2"', "version: ${set.level}-build")
    assert load(text).version == "info-build"
    line = error_message(load, VALID_DESCRIPTOR.replace('version: "1.2"', "version: ${here}"))
    assert line == "mine.yaml:4: version: ${here} has no meaning here — use ${set.…}"


def test_the_digest_depends_on_the_content_only(load) -> None:
    digest = load().digest
    assert digest.startswith("sha256:")
    assert load("# a comment\n" + VALID_DESCRIPTOR, {"binary": "operator", "level": "debug"}).digest == digest
    assert load(VALID_DESCRIPTOR.replace("1.2", "1.3")).digest != digest


def test_the_projects_own_descriptors_load(tmp_path: Path) -> None:
    assert {"reference", "grove-operator", "blank"} <= set(loading.names())
    assert loading.load("reference").roles == set(Role)
    assert loading.load("blank").start == "running"
    for name in loading.names():
        loading.validate(loading.locate(name))


@pytest.mark.parametrize(
    ("original", "replacement", "expected"),
    [
        ("kind: Implementation", "knd: Implementation", 'mine.yaml:2: knd: unknown field — did you mean "kind"?'),
        ("[operator]", "[operater]", 'mine.yaml:5: roles[0]: "operater" is not known here — did you mean "operator"?'),
        ("[operator]", "[]", "mine.yaml:5: roles: is empty — the roles it plays: operator, gang-scheduler or both"),
        (
            "[operator]",
            "[operator, gang-scheduler]",
            'mine.yaml:5: roles[1]: the role "gang-scheduler" has no process — '
            "add processes.gang-scheduler, or say start: running",
        ),
        (
            "${set.binary}",
            "${set.binry}",
            "mine.yaml:15: processes.operator.argv[0]: ${set.binry}: there is no such parameter — "
            'did you mean "binary"?',
        ),
        (
            "port: ${port.health}",
            "port: ${prt.health}",
            'mine.yaml:16: processes.operator.files.c.yaml: ${prt.health} is not known — did you mean "port.health"?',
        ),
        (
            "http://127.0.0.1:",
            "http://example.com:",
            'mine.yaml:17: processes.operator.ready.http: "http://example.com:${port.health}/readyz" '
            "has the wrong form — a URL that starts with http://127.0.0.1: and answers 200 when ready",
        ),
        (
            'ready: {http: "http://127.0.0.1:${port.health}/readyz"}',
            "ready: {log: '(unclosed'}",
            "mine.yaml:17: processes.operator.ready.log: invalid regular expression: missing ) at position 9 "
            "— fix it, or escape its special characters with \\",
        ),
        (
            "crds: [crds]",
            "crds: [crd]",
            "mine.yaml:12: install.crds[0]: no YAML file at crd — give a file, a folder with *.yaml files or a glob",
        ),
        (
            "crds: [crds]",
            'crds: ["${directory}/crds"]',
            "mine.yaml:12: install.crds[0]: ${directory} has no meaning in a path — "
            "use ${here}, ${project} or ${set.…}",
        ),
        (
            "reason: not done yet, ",
            "",
            'mine.yaml:19: expectedFailures[0]: the field "reason" is missing — '
            "add it (one line that says why it fails)",
        ),
    ],
)
def test_a_mistake_is_reported_with_line_field_and_remedy(load, original: str, replacement: str, expected: str) -> None:
    assert original in VALID_DESCRIPTOR
    assert error_message(load, VALID_DESCRIPTOR.replace(original, replacement)) == expected


def test_a_duplicate_expected_failure_is_refused(load) -> None:
    line = error_message(load, VALID_DESCRIPTOR + "- {id: CORE-001, reason: again}\n")
    assert line == "mine.yaml:20: expectedFailures[1]: CORE-001 is a duplicate — keep one of them"


def test_a_role_may_have_a_cluster_role(load) -> None:
    assert load().cluster_roles == {}
    assert load(VALID_DESCRIPTOR + "clusterRoles: {operator: mine}\n").cluster_roles == {Role.OPERATOR: "mine"}
    line = error_message(load, VALID_DESCRIPTOR + "clusterRoles: {gang-scheduler: mine}\n")
    assert line.startswith(
        'mine.yaml:20: clusterRoles.gang-scheduler: a ClusterRole for the role "gang-scheduler", which'
    )


def test_a_running_implementation_has_no_processes(load) -> None:
    line = error_message(load, VALID_DESCRIPTOR + "start: running\n")
    assert line.startswith("mine.yaml:13: processes: has no meaning with start: running — remove it, or say start: p")
    assert load(DESCRIPTOR_HEAD + "start: running\n").processes == {}


def test_a_required_parameter_must_be_given(load) -> None:
    assert error_message(load, VALID_DESCRIPTOR, {}) == (
        "mine.yaml:9: parameters.binary: a parameter is required: binary (the operator's binary) — "
        "give --set binary=PATH"
    )


def test_all_required_parameters_are_named_at_once(load) -> None:
    two_required_parameters = VALID_DESCRIPTOR.replace(
        "parameters:\n", "parameters:\n  crds: {kind: path, description: the CRDs.}\n"
    )
    assert error_message(load, two_required_parameters, {}) == (
        "mine.yaml:9: parameters.crds: parameters are required: crds (the CRDs), binary (the operator's binary) "
        "— give --set crds=PATH --set binary=PATH"
    )


def test_an_unknown_parameter_is_reported(load) -> None:
    line = error_message(load, VALID_DESCRIPTOR, {"binary": "operator", "lvel": "x"})
    assert line == '--set lvel: unknown parameter "lvel" — did you mean "level"?'


def test_a_descriptor_without_parameters_takes_none(load) -> None:
    line = error_message(load, DESCRIPTOR_HEAD.partition("parameters:")[0] + "start: running\n", {"binary": "operator"})
    assert line == '--set binary: unknown parameter "binary" — the descriptor has no parameters: leave it out'


def test_a_binary_must_exist_and_be_executable(load, tmp_path: Path) -> None:
    assert error_message(load, VALID_DESCRIPTOR, {"binary": "nowhere"}) == (
        "--set binary: nowhere does not exist — give the path of an existing file or folder"
    )
    (tmp_path / "text").write_text("")
    assert (
        error_message(load, VALID_DESCRIPTOR, {"binary": "text"})
        == "--set binary: text is not executable — run: chmod +x text"
    )
    assert error_message(load, VALID_DESCRIPTOR, {"binary": "crds"}) == (
        "--set binary: crds is a folder — give the path of the binary in it"
    )
    assert error_message(load, VALID_DESCRIPTOR, {"binary": ""}) == "--set binary: is empty — give a path"
    line = error_message(load, VALID_DESCRIPTOR.replace("${set.binary}", "no-such-program-here"))
    assert line == (
        'mine.yaml:15: processes.operator.argv[0]: "no-such-program-here" is not on PATH — install it, or give its path'
    )


def test_a_relative_path_of_a_program_is_relative_to_the_descriptor(load, tmp_path: Path) -> None:
    text = VALID_DESCRIPTOR.replace("${set.binary}", "./mine/operator")
    line = error_message(load, text)
    assert line.startswith("mine.yaml:15: processes.operator.argv[0]: ") and "mine/operator does not exist" in line
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "operator").symlink_to(sys.executable)
    load(text, {"binary": sys.executable})


def test_a_given_folder_without_yaml_files_is_reported(load, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    text = VALID_DESCRIPTOR.replace("crds: [crds]", 'crds: ["${set.crds}"]').replace(
        "  level:", "  crds: {description: its CRDs, kind: path}\n  level:"
    )
    assert error_message(load, text, {"binary": "operator", "crds": "empty"}) == (
        "--set crds: no YAML file at empty — give a file, a folder with *.yaml files or a glob"
    )


def test_an_unknown_implementation_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        loading.load("referense", {})
    assert str(caught.value) == (
        '--implementation: unknown implementation "referense" — did you mean "reference"? '
        "or give the path of a descriptor"
    )
    with pytest.raises(UsageError, match="no such file"):
        loading.load(str(tmp_path / "none.yaml"), {})
    with pytest.raises(UsageError, match="is a folder"):
        loading.load(f"{tmp_path}/", {})
    with pytest.raises(UsageError, match="is empty"):
        loading.load("", {})


def test_the_lease_of_a_leader_has_the_name_that_the_descriptor_gives(load) -> None:
    """The history records this Lease and no other Leases."""
    elected_descriptor = VALID_DESCRIPTOR.replace("[hpa]", "[leader-election]")
    for text, lease in (
        (elected_descriptor, LEASE),
        (f"{elected_descriptor}lease: mine.example.com\n", "mine.example.com"),
    ):
        assert load(text).lease == lease
        recorded_leases = [
            resource for resource in watched.resources(load(text), ApiServer()) if resource.resource == LEASES
        ]
        assert [resource.fields for resource in recorded_leases] == [f"metadata.name={lease}"]
    expected_end = "lease: is for the feature leader-election — remove it, or add the feature"
    assert error_message(load, f"{VALID_DESCRIPTOR}lease: mine\n").endswith(expected_end)


class ApiServer:
    """An API server that serves no optional resources."""

    served: ClassVar[dict[str, object]] = {}


SCHEDULER_DESCRIPTOR = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: mine
version: "1.2"
roles: [gang-scheduler]
schedulerName: mine-scheduler
parameters:
  queue: {description: a queue, default: q1}
pods: {labels: {queue: "${set.queue}"}, annotations: {scheduler: "${schedulerName}"}}
podgangs: {labels: {queue: q2}}
record: [podgroups.example.com]
settle: 5
supplied: {schedulerName: "${set.queue}"}
install:
  objects: [crds]
processes:
  gang-scheduler:
  - name: bind
    argv: [sleep, "${port.health}"]
    ready: {http: "http://127.0.0.1:${port.bind}/readyz"}
  - name: decide
    argv: [sleep, "${port.bind}"]
    ready: {log: ready}
"""


def test_a_role_may_have_several_processes_and_a_scheduler_additional_fields(load) -> None:
    descriptor = load(SCHEDULER_DESCRIPTOR, {"queue": "q3"})
    assert [process.name for process in descriptor.processes[Role.GANG_SCHEDULER]] == ["bind", "decide"]
    assert (descriptor.pods.labels, descriptor.pods.annotations) == ({"queue": "q3"}, {"scheduler": "mine-scheduler"})
    assert (descriptor.podgangs.labels, descriptor.record, descriptor.settle) == (
        {"queue": "q2"},
        ("podgroups.example.com",),
        5,
    )
    assert [path.name for path in descriptor.manifests("objects")] == ["a.yaml", "b.yaml"]
    assert deployment.supplier_of(descriptor).scheduler_name == "q3"


@pytest.mark.parametrize(
    ("original", "replacement", "expected"),
    [
        ("- name: decide\n    argv", "- argv", 'processes.gang-scheduler[1]: the field "name" is missing — add it'),
        ("name: decide", "name: bind", "processes.gang-scheduler[1].name: bind is a duplicate — give it another name"),
        ("name: decide", "name: 2nd", 'processes.gang-scheduler[1].name: "2nd" has the wrong form — the name of the'),
        ('argv: [sleep, "${port.bind}"]', "argv: []", "processes.gang-scheduler[1].argv: is empty — the program"),
        (
            "{log: ready}",
            '{http: "http://127.0.0.1:${port.bind}/readyz"}',
            "processes.gang-scheduler[1].ready.http: another process of the role has the same page — give each a port",
        ),
        ("podgroups.example.com", "pods.example.com", "record[0]: pods are recorded already — remove the entry"),
        ("podgroups.example.com", "podgroups", 'record[0]: "podgroups" has the wrong form — the plural and the group'),
        ("settle: 5", "settle: 40", "settle: 40 is greater than the maximum of 30 — seconds without a change"),
        (
            "queue: q2",
            'queue: "${here}"',
            "podgangs.labels.queue: ${here} has no meaning here — use ${schedulerName} or",
        ),
        (
            "queue: q2",
            'queue: "${podGang}"',
            "podgangs.labels.queue: ${podGang} is not known",
        ),
        ("labels: {queue: q2}", "label: {queue: q2}", 'podgangs.label: unknown field — did you mean "labels"?'),
        ("objects: [crds]", "objects: [crd]", "install.objects[0]: no YAML file at crd — give a file, a folder with"),
    ],
)
def test_a_mistake_in_the_fields_of_a_scheduler_is_reported(
    load, original: str, replacement: str, expected: str
) -> None:
    assert original in SCHEDULER_DESCRIPTOR
    assert expected in error_message(load, SCHEDULER_DESCRIPTOR.replace(original, replacement), {})


def test_only_a_gang_scheduler_may_have_a_settle_time(load) -> None:
    line = error_message(load, VALID_DESCRIPTOR + "settle: 5\n")
    assert line == 'mine.yaml:20: settle: is for the role "gang-scheduler", which it does not play — ' + (
        "remove it, or add the role"
    )


def test_a_parameter_that_the_reference_does_not_have_is_reported(load) -> None:
    descriptor = load(SCHEDULER_DESCRIPTOR.replace("{schedulerName: ", "{schedularName: "), {})
    with pytest.raises(UsageError, match=r'mine\.yaml:13: supplied.*unknown parameter "schedularName" — did you mean'):
        deployment.supplier_of(descriptor)


@pytest.mark.parametrize("pattern", ["/**/*.yaml", "/*/*/*.yaml", "${here}/**/*.yaml"])
def test_a_pattern_that_matches_too_many_folders_is_refused(
    load, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.setattr(globs, "MAX_FILES", 3)
    line = error_message(load, VALID_DESCRIPTOR.replace("crds: [crds]", f'crds: ["{pattern}"]'))
    assert line.startswith(
        "mine.yaml:12: install.crds[0]: cannot be looked through: there are more than 3 files below /"
    )
    assert line.endswith(" — give a file, a folder with *.yaml files or a glob")


def test_a_pattern_may_descend(load) -> None:
    descriptor = load(VALID_DESCRIPTOR.replace("crds: [crds]", 'crds: ["**/*.yaml"]'))
    assert [path.name for path in descriptor.manifests("crds")] == ["a.yaml", "b.yaml", "mine.yaml"]


def test_an_unreadable_folder_is_reported(load, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_permission_error(folder: Path, pattern: str) -> list[Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "glob", raise_permission_error)
    line = error_message(load, VALID_DESCRIPTOR.replace("crds: [crds]", 'crds: ["crds/*.yml"]'))
    assert line.startswith("mine.yaml:12: install.crds[0]: cannot be looked through: Permission denied")
