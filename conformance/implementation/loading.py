"""Loads descriptors: finds the file, checks it, and fills in the values of parameters.

`load` reports every mistake that can be found without a cluster. The descriptor that it returns can be started.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import msgspec
import regex

from conformance import data, documents
from conformance.documents import Document, Field
from conformance.errors import UsageError
from conformance.grove.kinds import LEASE, RECORDED_KINDS
from conformance.implementation import placeholders
from conformance.implementation.descriptor import (
    DEPLOYED_STARTS,
    SUFFIXES,
    Control,
    Deployment,
    Descriptor,
    ExpectedFailure,
    Helm,
    Install,
    Metadata,
    Part,
    Process,
    Role,
    Start,
    Upgrade,
)
from conformance.implementation.parameters import Parameter, require_known, resolve
from conformance.implementation.program import find_program, resolve_path
from conformance.suggestions import explain_missing, find_nearest, suggestion

OPTIONS = ("--implementation", "--set")
REFERENCE = "reference"
"""The descriptor that supplies the roles that an implementation does not play, unless the implementation names another
descriptor."""
PARTS: tuple[Part, ...] = ("crds", "objects", "webhooks", "manifests")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The file as written. `implementation.schema.json` defines the same fields, with better error messages."""

    api_version: str
    kind: str
    name: str
    version: str
    roles: list[Role]
    scheduler_name: str
    features: list[str] = []
    contract: str = ""
    start: Start = "processes"
    parameters: dict[str, Parameter] = {}
    install: Install = Install()
    processes: dict[Role, Process | list[Process]] = {}
    deployments: dict[Role, Deployment] = {}
    control: dict[Role, Control] = {}
    pods: Metadata = Metadata()
    podgangs: Metadata = Metadata()
    resource_claims: Metadata = Metadata()
    cluster_roles: dict[Role, str] = {}
    supplied: dict[str, str] = {}
    supplied_by: str = REFERENCE
    record: list[str] = []
    lease: str = LEASE
    settle: float = 0.0
    upgrades: list[Upgrade] = []
    expected_failures: list[ExpectedFailure] = []

    def each_process(self) -> Iterator[tuple[Role, Field, Process]]:
        """Yield every process with its role and its field."""
        for role, processes in self.processes.items():
            if isinstance(processes, Process):
                yield role, ("processes", role), processes
            else:
                yield from ((role, ("processes", role, index), process) for index, process in enumerate(processes))


def load(
    name_or_path: str,
    settings: Mapping[str, str] | None = None,
    *,
    options: tuple[str, str] = OPTIONS,
) -> Descriptor:
    """Return the descriptor with this name in `fixtures/implementations/`, or at this path.

    `settings` are the values of its parameters. Raises UsageError, which names the `options` that gave both arguments.
    """
    document, file = _read(locate(name_or_path, options[0]))
    settings = resolve(file.parameters, settings or {}, document, options[1])

    def expanded(text: str) -> str:
        return placeholders.expand(text, lambda name: values[name.removeprefix("set.")])

    values = settings
    canonical = json.dumps(document.value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    descriptor = Descriptor(
        document=document,
        name=file.name,
        version=expanded(file.version),
        roles=frozenset(file.roles),
        features=frozenset(file.features),
        contract=expanded(file.contract),
        scheduler_name=expanded(file.scheduler_name),
        start=file.start,
        install=file.install,
        processes={
            role: (role_processes,) if isinstance(role_processes, Process) else tuple(role_processes)
            for role, role_processes in file.processes.items()
        },
        deployments=file.deployments,
        control=file.control,
        pods=file.pods,
        podgangs=file.podgangs,
        resource_claims=file.resource_claims,
        cluster_roles=file.cluster_roles,
        supplied=file.supplied,
        supplied_by=file.supplied_by,
        record=tuple(file.record),
        lease=file.lease,
        settle=file.settle,
        expected_failures=tuple(file.expected_failures),
        settings=settings,
        upgrades=tuple(file.upgrades),
        digest="sha256:" + hashlib.sha256(canonical.encode()).hexdigest(),
    )
    filled_document = {**document.value, "schedulerName": descriptor.scheduler_name}
    if descriptor.contract:
        filled_document["contract"] = descriptor.contract
    documents.check(dataclasses.replace(document, value=filled_document), _schema())
    _check_programs(descriptor, file)
    for part in PARTS:
        descriptor.manifests(part)

    return _with_filled_parts(descriptor, file)


def _with_filled_parts(descriptor: Descriptor, file: _File) -> Descriptor:
    """Return the descriptor with the values of the placeholders in what the suite adds to objects."""

    def value(name: str) -> str:
        return descriptor.static_value(name) or ""

    def expand_for_pods(name: str) -> str:
        return f"${{{name}}}" if name in placeholders.POD_LABELS else value(name)

    supplied = {name: placeholders.expand(text, value) for name, text in file.supplied.items()}
    return dataclasses.replace(
        descriptor,
        pods=file.pods.fill(expand_for_pods),
        podgangs=file.podgangs.fill(value),
        resource_claims=file.resource_claims.fill(value),
        supplied=supplied,
    )


def validate(path: Path) -> None:
    """Check a file for all mistakes that can be found without the values of its parameters. Raises UsageError with the
    first mistake."""
    _read(path)


def parameters_without_value(path: Path, set_names: Collection[str]) -> dict[str, Parameter]:
    """Return the descriptor's parameters that have no default and are not in `set_names`. Raises UsageError if the
    descriptor is invalid or does not declare a parameter in `set_names`."""
    _, file = _read(path)
    require_known(file.parameters, set_names)
    return {
        name: parameter
        for name, parameter in file.parameters.items()
        if parameter.default is None and name not in set_names
    }


def folder() -> Path:
    """Return the folder of the descriptors that can be loaded by name."""
    return data.folder("fixtures") / "implementations"


def _schema() -> Path:
    return folder() / "implementation.schema.json"


def names() -> list[str]:
    """Return the names of the descriptors that can be loaded by name."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def locate(name_or_path: str, option: str = OPTIONS[0]) -> Path:
    """Return the file of a descriptor. Raises UsageError with a suggestion for an unknown name."""
    if not name_or_path:
        raise UsageError("is empty", where=option, hint=f"give a file or one of: {', '.join(names())}")
    if "/" in name_or_path or name_or_path.endswith(SUFFIXES):
        path = Path(name_or_path).expanduser()
        if not path.is_file():
            problem, similar_name = ("is a folder", "") if path.is_dir() else explain_missing(path)
            hint = similar_name or "give the path of a descriptor; `implementation new` writes one"
            raise UsageError(problem, where=f"{option} {name_or_path}", hint=hint)
        return path
    if name_or_path not in names():
        files = [path.name for path in Path().glob("*") if path.suffix in SUFFIXES]
        similar_name = find_nearest(name_or_path, names()) or find_nearest(name_or_path, files)
        hint = f'did you mean "{similar_name}"?' if similar_name else suggestion(name_or_path, names())
        raise UsageError(
            f'unknown implementation "{name_or_path}"', where=option, hint=f"{hint} or give the path of a descriptor"
        )
    return folder() / f"{name_or_path}.yaml"


def _read(path: Path) -> tuple[Document, _File]:
    document = documents.read(path, _schema())
    file = msgspec.convert(document.value, _File)
    _check_roles(document, file)
    _check_processes(document, file)
    _check_scheduler_fields(document, file)
    _check_placeholders(document, file)
    _check_patterns(document, file)
    _check_upgrades(document, file)
    _check_expected_failures(document, file)
    return document, file


def _check_roles(document: Document, file: _File) -> None:
    """Check that each role is played in the way that `start` requires."""
    _check_start(document, file)
    roles_by_field: dict[str, Collection[Role]] = {
        "processes": file.processes,
        "deployments": file.deployments,
        "control": file.control,
    }
    for field, roles in roles_by_field.items():
        for role in roles:
            if role not in file.roles:
                raise UsageError(
                    f'is for the role "{role}", which it does not play',
                    where=document.location(field, role),
                    hint=f"add the role to roles, or remove it from {field}",
                )
    for role in file.cluster_roles:
        if role not in file.processes:
            raise UsageError(
                f'a ClusterRole for the role "{role}", which it has no process for',
                where=document.location("clusterRoles", role),
                hint="remove it, or add the process",
            )
    if file.start == "running":
        return
    field, noun = ("deployments", "Deployment") if file.start in DEPLOYED_STARTS else ("processes", "process")
    for index, role in enumerate(file.roles):
        if role not in roles_by_field[field]:
            raise UsageError(
                f'the role "{role}" has no {noun}',
                where=document.location("roles", index),
                hint=f"add {field}.{role}, or say start: running",
            )


def _check_start(document: Document, file: _File) -> None:
    """Check that fields for other ways of starting are absent, and that the fields for the descriptor's own way are
    complete."""
    fields_by_way: dict[Field, tuple[object, tuple[Start, ...]]] = {
        ("processes",): (file.processes, ("processes",)),
        ("deployments",): (file.deployments, DEPLOYED_STARTS),
        ("control",): (file.control, ("running",)),
        ("install", "manifests"): (file.install.manifests, ("manifests",)),
        ("install", "helm"): (file.install.helm, ("helm",)),
    }
    for field, (value, starts) in fields_by_way.items():
        if value and file.start not in starts:
            problem = f"has no meaning with start: {file.start}"
            raise UsageError(
                problem, where=document.location(*field), hint=f"remove it, or say start: {' or '.join(starts)}"
            )
    if file.start in DEPLOYED_STARTS and not getattr(file.install, file.start):
        location = document.location("start")
        raise UsageError(f"there is nothing to deploy: install.{file.start} is missing", where=location, hint="add it")
    if file.start in DEPLOYED_STARTS and "leader-election" in file.features:
        location = document.location("features", file.features.index("leader-election"))
        hint = "remove it, or say start: processes"
        raise UsageError("a second operator can only be a process of the suite", where=location, hint=hint)
    if "lease" in document.value and "leader-election" not in file.features:
        hint = "remove it, or add the feature"
        raise UsageError("is for the feature leader-election", where=document.location("lease"), hint=hint)


def _check_processes(document: Document, file: _File) -> None:
    """Check that the processes of a role can be told apart: by their names, and by the pages that show their
    readiness."""
    names: set[tuple[Role, str]] = set()
    pages: set[tuple[Role, str | None]] = {(role, None) for role in Role}
    for role, field, process in file.each_process():
        location = document.location(*field, "name")
        if process.name and not isinstance(file.processes[role], list):
            raise UsageError("the only process of a role has no name", where=location, hint="remove it, or give a list")
        if (role, process.name) in names:
            raise UsageError(f"{process.name} is a duplicate", where=location, hint="give it another name")
        names.add((role, process.name))
        page = process.ready.http
        if page is not None and (role, page) in pages:
            location, hint = (
                document.location(*field, "ready", "http"),
                "give each a port of its own, as ${port.NAME-health}",
            )
            raise UsageError("another process of the role has the same page", where=location, hint=hint)
        pages.add((role, page))


def _check_scheduler_fields(document: Document, file: _File) -> None:
    """Check the fields that only a gang scheduler may have, and that `record` names no resource that the suite records
    anyway."""
    for field in ("pods", "podgangs", "resourceClaims", "settle"):
        if field in document.value and Role.GANG_SCHEDULER not in file.roles:
            raise UsageError(
                'is for the role "gang-scheduler", which it does not play',
                where=document.location(field),
                hint="remove it, or add the role",
            )
    recorded_plurals = {resource.plural for resource in RECORDED_KINDS}
    for index, name in enumerate(file.record):
        plural = name.partition(".")[0]
        if plural in recorded_plurals:
            raise UsageError(
                f"{plural} are recorded already", where=document.location("record", index), hint="remove the entry"
            )
        recorded_plurals.add(plural)


def _check_placeholders(document: Document, file: _File) -> None:
    for key, text in {"version": file.version, "schedulerName": file.scheduler_name}.items():
        _check_text(document, (key,), text, (), file.parameters, process=False)
        if unknown_names := [name for name in placeholders.names_in(text) if not name.startswith("set.")]:
            raise UsageError(
                f"${{{unknown_names[0]}}} has no meaning here", where=document.location(key), hint="use ${set.…}"
            )
    for kind in ("pods", "podgangs", "resourceClaims", "supplied"):
        additional_names = placeholders.POD_LABELS if kind == "pods" else ()
        for field, text in document.strings(kind) if kind in document.value else ():
            _check_text(document, field, text, (), file.parameters, process=False, additional_names=additional_names)
            if unknown_names := [
                name
                for name in placeholders.names_in(text)
                if not _known_at_load(name) and name not in additional_names
            ]:
                hint = "use ${schedulerName} or ${set.…}" + (", ${podGang} or ${podClique}" if additional_names else "")
                raise UsageError(
                    f"${{{unknown_names[0]}}} has no meaning here", where=document.location(*field), hint=hint
                )
    for part in PARTS:
        for index, pattern in enumerate(getattr(file.install, part)):
            field_path: Field = ("install", part, index)
            _check_text(document, field_path, pattern, (), file.parameters, process=False)
            if dynamic_names := [name for name in placeholders.names_in(pattern) if not placeholders.is_static(name)]:
                raise UsageError(
                    f"${{{dynamic_names[0]}}} has no meaning in a path",
                    where=document.location(*field_path),
                    hint="use ${here}, ${project} or ${set.…}",
                )
    for _, process_field, process in file.each_process():
        for field, text in document.strings(*process_field):
            _check_text(document, field, text, process.files, file.parameters, process=True)
    for parent in (("control",), ("install", "helm")):
        for field, text in document.strings(*parent) if _is_set(document, *parent) else ():
            _check_text(document, field, text, (), file.parameters, process=False)


def _is_set(document: Document, *field: str) -> bool:
    return field in document.lines


def _known_at_load(name: str) -> bool:
    return name == "schedulerName" or name.startswith("set.")


def _check_text(
    document: Document,
    field: Field,
    text: str,
    files: Collection[str],
    parameters: Collection[str],
    *,
    process: bool,
    additional_names: Collection[str] = (),
) -> None:
    try:
        placeholders.check(text, files=files, parameters=parameters, process=process, additional_names=additional_names)
    except placeholders.UnknownPlaceholder as error:
        raise UsageError(str(error), where=document.location(*field), hint=error.hint) from error


def _check_patterns(document: Document, file: _File) -> None:
    for _, field, process in file.each_process():
        try:
            regex.compile(process.ready.log or "")
        except regex.error as error:
            raise UsageError(
                f"invalid regular expression: {error}",
                where=document.location(*field, "ready", "log"),
                hint="fix it, or escape its special characters with \\",
            ) from error


def _check_upgrades(document: Document, file: _File) -> None:
    names: set[str] = set()
    for index, upgrade in enumerate(file.upgrades):
        if upgrade.name in names:
            location = document.location("upgrades", index, "name")
            raise UsageError(f"{upgrade.name} is a duplicate", where=location, hint="give it another name")
        names.add(upgrade.name)
        for name, value in upgrade.set.items():
            location = document.location("upgrades", index, "set", name)
            if name not in file.parameters:
                hint = suggestion(name, file.parameters)
                raise UsageError(f'unknown parameter "{name}"', where=location, hint=hint)
            _check_text(document, ("upgrades", index, "set", name), value, (), file.parameters, process=False)


def _check_expected_failures(document: Document, file: _File) -> None:
    ids: set[str] = set()
    for index, entry in enumerate(file.expected_failures):
        if entry.id in ids:
            raise UsageError(
                f"{entry.id} is a duplicate",
                where=document.location("expectedFailures", index),
                hint="keep one of them",
            )
        ids.add(entry.id)


def _check_programs(descriptor: Descriptor, file: _File) -> None:
    """Check each program that can be found without a cluster."""
    if file.install.helm is not None:
        find_program("helm", descriptor.document.location("start"))
        _check_chart(descriptor, file.install.helm)
    for role, control in file.control.items():
        for step, command in (("stop", control.stop), ("start", control.start), ("kill", control.kill)):
            if command:
                _check_program(descriptor, command[0], ("control", role, step, 0))
    for _, field, process in file.each_process():
        program = process.argv[0]
        assert isinstance(program, str)  # required by the schema
        _check_program(descriptor, program, (*field, "argv", 0))


def _check_chart(descriptor: Descriptor, helm: Helm) -> None:
    """Check that the local files of a Helm release exist."""
    file_names: dict[Field, str] = {("install", "helm", "chart"): helm.chart}
    file_names |= {("install", "helm", "values", index): name for index, name in enumerate(helm.values)}
    for field, name in file_names.items():
        expanded = placeholders.expand(name, lambda placeholder: descriptor.static_value(placeholder) or "")
        if "://" not in expanded and not (descriptor.folder / expanded).exists():
            location = placeholders.option(name) or descriptor.document.location(*field)
            problem = f"{documents.display_path(descriptor.folder / expanded)} does not exist"
            raise UsageError(problem, where=location, hint="give a path relative to the descriptor, or oci://…")


def _check_program(descriptor: Descriptor, program: str, field: Field) -> None:
    if all(placeholders.is_static(name) for name in placeholders.names_in(program)):
        location = placeholders.option(program) or descriptor.document.location(*field)
        expanded = placeholders.expand(program, lambda name: descriptor.static_value(name) or "")
        find_program(resolve_path(expanded, descriptor.folder), location)
