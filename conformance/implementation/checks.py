"""Checks of descriptors that their types cannot express. Each raises UsageError with the first mistake."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection

import regex

from conformance import documents, formats
from conformance.documents import Document, Field
from conformance.errors import UsageError
from conformance.grove.kinds import RECORDED_KINDS
from conformance.implementation import expectations, placeholders
from conformance.implementation.descriptor import Descriptor, DescriptorFormat
from conformance.implementation.fields import DEPLOYED_STARTS, PARTS, Helm, Process, Role, Start
from conformance.implementation.program import find_program, resolve_path
from conformance.suggestions import suggestion


def check(document: Document, fields: DescriptorFormat) -> None:
    """Check what can be checked without the values of parameters."""
    _check_roles(document, fields)
    _check_processes(document, fields)
    _check_scheduler_fields(document, fields)
    _check_placeholders(document, fields)
    _check_patterns(document, fields)
    _check_upgrades(document, fields)
    expectations.require_distinct(document, fields.expected_failures)


def _check_roles(document: Document, fields: DescriptorFormat) -> None:
    """Check that each role is played in the way that `start` requires."""
    _check_start(document, fields)
    roles_by_field: dict[str, Collection[Role]] = {
        "processes": fields.processes,
        "deployments": fields.deployments,
        "control": fields.control,
    }
    for field, roles in roles_by_field.items():
        for role in roles:
            if role not in fields.roles:
                raise UsageError(
                    f'is for the role "{role}", which it does not play',
                    where=document.location(field, role),
                    hint=f"add the role to roles, or remove it from {field}",
                )
    for role in fields.cluster_roles:
        if role not in fields.processes:
            raise UsageError(
                f'a ClusterRole for the role "{role}", which it has no process for',
                where=document.location("clusterRoles", role),
                hint="remove it, or add the process",
            )
    if fields.start == "running":
        return
    field, noun = ("deployments", "Deployment") if fields.start in DEPLOYED_STARTS else ("processes", "process")
    for index, role in enumerate(document.value["roles"]):
        if role not in roles_by_field[field]:
            raise UsageError(
                f'the role "{role}" has no {noun}',
                where=document.location("roles", index),
                hint=f"add {field}.{role}, or say start: running",
            )


def _check_start(document: Document, fields: DescriptorFormat) -> None:
    """Check that fields for other ways of starting are absent, and that the fields for the descriptor's own way are
    complete."""
    fields_by_way: dict[Field, tuple[object, tuple[Start, ...]]] = {
        ("processes",): (fields.processes, ("processes",)),
        ("deployments",): (fields.deployments, DEPLOYED_STARTS),
        ("control",): (fields.control, ("running",)),
        ("install", "manifests"): (fields.install.manifests, ("manifests",)),
        ("install", "helm"): (fields.install.helm, ("helm",)),
    }
    for field, (value, starts) in fields_by_way.items():
        if value and fields.start not in starts:
            problem = f"has no meaning with start: {fields.start}"
            raise UsageError(
                problem, where=document.location(*field), hint=f"remove it, or say start: {' or '.join(starts)}"
            )
    if fields.start in DEPLOYED_STARTS and not getattr(fields.install, fields.start):
        location = document.location("start")
        raise UsageError(
            f"there is nothing to deploy: install.{fields.start} is missing", where=location, hint="add it"
        )
    if fields.start in DEPLOYED_STARTS and "leader-election" in fields.features:
        location = document.location("features", document.value["features"].index("leader-election"))
        hint = "remove it, or say start: processes"
        raise UsageError("a second operator can only be a process of the suite", where=location, hint=hint)
    if "lease" in document.value and "leader-election" not in fields.features:
        hint = "remove it, or add the feature"
        raise UsageError("is for the feature leader-election", where=document.location("lease"), hint=hint)


def _check_processes(document: Document, fields: DescriptorFormat) -> None:
    """Check that the processes of a role can be told apart: by their names, and by the pages that show their
    readiness."""
    names: set[tuple[Role, str]] = set()
    pages: set[tuple[Role, str | None]] = {(role, None) for role in Role}
    for role, field, process in fields.each_process():
        location = document.location(*field, "name")
        if process.name and not isinstance(fields.processes[role], list):
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


def _check_scheduler_fields(document: Document, fields: DescriptorFormat) -> None:
    """Check the fields that only a gang scheduler may have, and that `record` names no resource that the suite records
    anyway."""
    for field in ("pods", "podgangs", "resourceClaims", "settle"):
        if field in document.value and Role.GANG_SCHEDULER not in fields.roles:
            raise UsageError(
                'is for the role "gang-scheduler", which it does not play',
                where=document.location(field),
                hint="remove it, or add the role",
            )
    recorded_plurals = {resource.plural for resource in RECORDED_KINDS}
    for index, name in enumerate(fields.record):
        plural = name.partition(".")[0]
        if plural in recorded_plurals:
            raise UsageError(
                f"{plural} are recorded already", where=document.location("record", index), hint="remove the entry"
            )
        recorded_plurals.add(plural)


def _check_placeholders(document: Document, fields: DescriptorFormat) -> None:
    def check(
        *parent: str | int,
        permit: Callable[[str], bool] = lambda name: True,
        problem: str = "has no meaning here",
        hint: str = "",
        pod_names: Collection[str] = (),
        process: Process | None = None,
    ) -> None:
        files, is_process = process.files if process is not None else (), process is not None
        for field, text in document.strings(*parent) if parent in document.lines else ():
            location = document.location(*field)
            try:
                placeholders.check(
                    text, files=files, parameters=fields.parameters, process=is_process, additional_names=pod_names
                )
            except placeholders.UnknownPlaceholder as error:
                raise UsageError(str(error), where=location, hint=error.hint) from error
            for name in placeholders.names_in(text):
                if not permit(name) and name not in pod_names:
                    raise UsageError(f"${{{name}}} {problem}", where=location, hint=hint)

    def is_parameter(name: str) -> bool:
        return name.startswith("set.")

    def is_fixed(name: str) -> bool:
        return name == "schedulerName" or is_parameter(name)

    for key in ("version", "schedulerName"):
        check(key, permit=is_parameter, hint="use ${set.…}")
    hint = "use ${schedulerName} or ${set.…}"
    check("pods", permit=is_fixed, hint=f"{hint}, ${{podGang}} or ${{podClique}}", pod_names=placeholders.POD_LABELS)
    for key in ("podgangs", "resourceClaims", "supplied"):
        check(key, permit=is_fixed, hint=hint)
    for part in PARTS:
        hint = "use ${here}, ${project} or ${set.…}"
        check("install", part, permit=placeholders.is_static, problem="has no meaning in a path", hint=hint)
    for _, process_field, process in fields.each_process():
        check(*process_field, process=process)
    check("control")
    check("install", "helm")
    for index in range(len(fields.upgrades)):
        check("upgrades", index, "set")


def _check_patterns(document: Document, fields: DescriptorFormat) -> None:
    for _, field, process in fields.each_process():
        try:
            regex.compile(process.ready.log or "")
        except regex.error as error:
            raise UsageError(
                f"invalid regular expression: {error}",
                where=document.location(*field, "ready", "log"),
                hint="fix it, or escape its special characters with \\",
            ) from error


def _check_upgrades(document: Document, fields: DescriptorFormat) -> None:
    names: set[str] = set()
    for index, upgrade in enumerate(fields.upgrades):
        if upgrade.name in names:
            location = document.location("upgrades", index, "name")
            raise UsageError(f"{upgrade.name} is a duplicate", where=location, hint="give it another name")
        names.add(upgrade.name)
        for name in upgrade.set:
            location = document.location("upgrades", index, "set", name)
            if name not in fields.parameters:
                hint = suggestion(name, fields.parameters)
                raise UsageError(f'unknown parameter "{name}"', where=location, hint=hint)


def check_values(descriptor: Descriptor) -> None:
    """Check the values of parameters: the form of the fields that consist of one, and that each program and each file
    exists that can be found without a cluster."""
    value = {**descriptor.document.value, "schedulerName": descriptor.scheduler_name}
    value |= {"contract": descriptor.contract} if descriptor.contract else {}
    documents.check(dataclasses.replace(descriptor.document, value=value), formats.schema(DescriptorFormat))
    if descriptor.install.helm is not None:
        find_program("helm", descriptor.document.location("start"))
        _check_chart(descriptor, descriptor.install.helm)
    for role, control in descriptor.control.items():
        for step, command in (("stop", control.stop), ("start", control.start), ("kill", control.kill)):
            if command:
                _check_program(descriptor, command[0], ("control", role, step, 0))
    for role, processes in descriptor.processes.items():
        is_list = isinstance(descriptor.document.value["processes"][role], list)
        for index, process in enumerate(processes):
            program = process.argv[0]
            assert isinstance(program, str)  # required by the schema
            _check_program(descriptor, program, ("processes", role, *((index,) if is_list else ()), "argv", 0))
    for part in PARTS:
        descriptor.manifests(part)


def _check_chart(descriptor: Descriptor, helm: Helm) -> None:
    """Check that the local files of a Helm release exist."""
    file_names: dict[Field, str] = {("install", "helm", "chart"): helm.chart}
    file_names |= {("install", "helm", "values", index): name for index, name in enumerate(helm.values)}
    for field, name in file_names.items():
        expanded = descriptor.expand(name)
        if "://" not in expanded and not (descriptor.folder / expanded).exists():
            location = placeholders.option(name) or descriptor.document.location(*field)
            problem = f"{documents.display_path(descriptor.folder / expanded)} does not exist"
            raise UsageError(problem, where=location, hint="give a path relative to the descriptor, or oci://…")


def _check_program(descriptor: Descriptor, program: str, field: Field) -> None:
    if all(placeholders.is_static(name) for name in placeholders.names_in(program)):
        location = placeholders.option(program) or descriptor.document.location(*field)
        find_program(resolve_path(descriptor.expand(program), descriptor.folder), location)
