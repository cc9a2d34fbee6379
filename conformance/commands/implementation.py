"""`grove-conformance implementation …`: creates, checks and tries the descriptors of users."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from conformance import data
from conformance.cluster import progress
from conformance.commands import chosen_cluster, output
from conformance.commands.chosen_cluster import Context, Kubeconfig
from conformance.commands.options import decode_into, refuse
from conformance.documents import display_path, suggestion
from conformance.errors import Exit, UsageError
from conformance.grove import lines, workloads
from conformance.implementation import deployment, discovery, installer, loading, parameters, skeleton
from conformance.implementation.descriptor import SUFFIXES, Descriptor, Role
from conformance.implementation.fields import PARTS
from conformance.run import declared, trial
from conformance.suite.registry import requirement

app = typer.Typer(
    help="Make, check and try the descriptor of an implementation.", no_args_is_help=True, add_completion=False
)

File = Annotated[str, typer.Argument(metavar="FILE", help="Path of a descriptor, or the name of one of ours.")]
FILE = "conformance.yaml"
"""The name of a new descriptor."""
EXAMPLE = "toy-operator"
"""The operator of docs/examples, a program in Go and its descriptor."""
EXAMPLE_FILES = ("go.mod", "main.go", "toy.yaml")
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Set a parameter of the descriptor, NAME=VALUE (repeatable).")
]


@app.command()
def validate(file: File, setting: Settings = None) -> None:
    """Check a descriptor, and every file and program that it names, without a cluster."""
    path, settings = loading.locate(file, "FILE"), parameters.assignments(setting or ())
    if missing := loading.parameters_without_value(path, settings):
        options = " ".join(
            f"--set {name}={'PATH' if parameter.kind == 'path' else 'VALUE'}" for name, parameter in missing.items()
        )
        typer.echo(
            f"{display_path(path)} is well-formed; to check the programs and files that it names, give {options}"
        )
        return
    judged, supplied = _load_and_check(file, settings)
    typer.echo(
        "\n".join([f"{display_path(path)} is valid", *(f"  {line}" for line in _description_lines(judged, supplied))])
    )


@app.command()
def guide() -> None:
    """Print a guide to descriptors, with all their fields, as Markdown."""
    typer.echo(data.guide(), nl=False)


@dataclass(frozen=True, kw_only=True)
class DescriptorOptions:
    """The options of `implementation new`."""

    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help=f"File to write, {FILE} by default, or the folder of --example; it must not exist.",
        ),
    ] = None
    example: Annotated[
        bool,
        typer.Option(
            "--example",
            help=f"Write a small operator to try things out, a program in Go and its descriptor, into the folder FILE"
            f" ({EXAMPLE} by default).",
        ),
    ] = False
    name: Annotated[str, typer.Option(help="Name in reports, for example my-operator.")] = ""
    version: Annotated[str, typer.Option(help="Version in reports.")] = "0.1.0"
    role: Annotated[
        list[Role] | None, typer.Option(help="A role that it plays (repeatable); the reference supplies the other.")
    ] = None
    scheduler_name: Annotated[str, typer.Option(help="spec.schedulerName of the pods of its gangs.")] = ""
    command: Annotated[
        str, typer.Option(help="Command line that starts it, with placeholders such as ${kubeconfig}.")
    ] = ""
    ready: Annotated[
        str, typer.Option(help="URL that answers 200, or a regular expression that a line of the log matches.")
    ] = ""
    running: Annotated[bool, typer.Option("--running", help="It runs already: the suite starts nothing.")] = False
    crds: Annotated[
        str, typer.Option(help="Its CRDs: a file, a folder or a glob; by default ours, of the line of --contract.")
    ] = ""
    contract: Annotated[
        str,
        typer.Option(
            help="Line of Grove's contract, if the CRDs are ours: names, or maps with PodGangMaps and coherent updates."
        ),
    ] = lines.NAMES
    feature: Annotated[
        list[str] | None, typer.Option(help="An optional feature that it claims, such as topology (repeatable).")
    ] = None
    webhooks: Annotated[str, typer.Option(help="Its webhook configurations, if it has any.")] = ""


@app.command()
@decode_into(DescriptorOptions)
def new(ctx: typer.Context, options: DescriptorOptions) -> None:
    """Write a descriptor from a few answers: from options and, on a terminal, from questions about missing options."""
    command, ready = options.command, options.ready
    if options.example:
        reason = "writes a descriptor that is complete"
        conflicting = set(ctx.params) - {"file", "example"}
        refuse(ctx, conflicting, option_in_use="--example", reason=reason, alternative="leave out --example")
        _write_example(options.file or Path(EXAMPLE))
        return
    file = options.file or Path(FILE)
    if file.exists():
        raise UsageError("exists already", where=str(file), hint="give another name, or remove it")
    if options.crds:
        reason = "these CRDs decide the line"
        refuse(ctx, {"contract"}, option_in_use="--crds", reason=reason, alternative="leave out --crds")
    if options.contract not in skeleton.OUR_CRDS:
        raise UsageError(
            f"unknown line {options.contract!r}",
            where="--contract",
            hint=suggestion(options.contract, skeleton.OUR_CRDS),
        )
    features = requirement.load().features
    for feature_name in options.feature or ():
        if feature_name not in features:
            raise UsageError(
                f"unknown feature {feature_name!r}", where="--feature", hint=suggestion(feature_name, features)
            )
    if options.running and (command or ready):
        raise UsageError("starts nothing", where="--running", hint="leave out --command and --ready")
    name = options.name or _prompt("--name", "Name of the implementation", "my-operator")
    roles = options.role or _roles(
        _prompt("--role", "Roles that it plays: operator, gang-scheduler, or both", "operator")
    )
    scheduler_name = options.scheduler_name or _prompt(
        "--scheduler-name", "schedulerName of the pods of its gangs", name
    )
    if not options.running:
        suggested_command = f"bin/{name} --kubeconfig=${{kubeconfig}} --health=127.0.0.1:${{port.health}}"
        command = command or _prompt("--command", "Command that starts it", suggested_command)
        ready = ready or _prompt("--ready", "URL or log line that shows that it is ready", _READY)
    answers = skeleton.Answers(
        name=name,
        version=options.version,
        roles=sorted(set(roles)),
        scheduler_name=scheduler_name,
        command=_split_command(command),
        ready=ready,
        crds=(options.crds,) if options.crds else skeleton.OUR_CRDS[options.contract],
        webhooks=options.webhooks,
        features=sorted(set(options.feature or ())),
    )
    _write_descriptor(file, skeleton.descriptor(answers))
    typer.echo(
        f"wrote {display_path(file)}; next: grove-conformance implementation try {shlex.quote(_path_argument(file))}"
    )


@app.command("try")
def try_(
    ctx: typer.Context,
    file: File,
    setting: Settings = None,
    workload: Annotated[str, typer.Option(help="The set to create, of fixtures/workloads/.")] = trial.WORKLOAD,
    within: Annotated[float, typer.Option(min=1, max=600, help="Seconds in which everything should be there.")] = 20.0,
    cluster: Annotated[
        str, typer.Option(help="`own` starts a fake cluster; `existing` uses a disposable one of yours.")
    ] = "own",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> int:
    """Start an implementation with one small set on a cluster, and show which objects exist and which should.

    Exit codes: 0 everything is there, 1 something is missing, 3 cluster error, 4 usage error.
    """
    if workload not in workloads.names():
        raise UsageError(
            f"unknown workload {workload!r}", where="--workload", hint=suggestion(workload, workloads.names())
        )
    existing_cluster = chosen_cluster.existing_kubeconfig(ctx, cluster, kubeconfig, context)
    judged, supplied = _load_and_check(
        file, parameters.assignments(setting or ()), "" if existing_cluster is None else str(existing_cluster.path)
    )
    if existing_cluster is None:
        deployment.require_containers(judged)
        deployment.require_crds(judged)
    with progress.terminal(f"trial of {judged.name}") as report:
        outcome = trial.run_trial(
            judged, supplied, within, report, workload=workload, existing_cluster=existing_cluster
        )
    table = Table("", "should be there", "is there", box=None, pad_edge=False)
    for line in outcome.lines:
        table.add_row(*(("ok", line.expected, "yes") if not line.unmet else ("MISSING", line.expected, line.unmet)))
    output.console().print(table, markup=False)
    if outcome.complete:
        options = " ".join(f"--set {shlex.quote(text)}" for text in setting or ())
        cluster_options = (
            shlex.join(["--cluster", "existing", *existing_cluster.options]) if existing_cluster is not None else ""
        )
        command = " ".join(
            filter(None, ["grove-conformance run --implementation", shlex.quote(file), options, cluster_options])
        )
        typer.echo(f"everything is there; next: {command} --profile core")
        return Exit.CONFORMANT
    if outcome.log_tail:
        typer.echo(outcome.log_tail)
    return Exit.NOT_CONFORMANT


# -- details ---------------------------------------------------------------------------------------------------------

_READY = "http://127.0.0.1:${port.health}/readyz"


def _load_and_check(file: str, settings: dict[str, str], kubeconfig: str = "") -> tuple[Descriptor, Descriptor | None]:
    """Return a descriptor and the supplier of its missing roles. Everything is checked that needs no cluster, or only
    the existing cluster if there is one. Raises UsageError if a check fails."""
    judged = discovery.complete(loading.load(file, settings, options=("FILE", "--set")), kubeconfig)
    supplied = deployment.supplier_of(judged)
    for descriptor in filter(None, (judged, supplied)):
        installer.check(descriptor)
    declared.check(judged, requirement.load())
    return judged, supplied


def _description_lines(judged: Descriptor, supplied: Descriptor | None) -> Iterator[str]:
    missing_roles = ", ".join(sorted(set(Role) - judged.roles))
    supply = f"; {supplied.name} {supplied.version} supplies: {missing_roles}" if supplied else ""
    yield f"plays      {', '.join(sorted(judged.roles))}, as {judged.name} {judged.version}{supply}"
    if judged.line:
        yield f"contract   line {judged.line}, release {judged.release}"
    yield f"claims     {', '.join(sorted(judged.features)) or 'no optional feature'}"
    if judged.discovered:  # the CRDs may claim a feature that the descriptor does not name
        yield f"discovered {'; '.join(f'{field}: {value}' for field, value in sorted(judged.discovered.items()))}"
    counts = [f"{len(judged.manifests(part))} files of {part}" for part in PARTS if judged.manifests(part)]
    yield f"installs   {', '.join(counts) or 'nothing'}"
    for role, processes in judged.processes.items():
        for process in processes:
            arguments = " ".join(argument for argument in process.argv if isinstance(argument, str))
            yield f"starts     {f'{role} {process.name}'.rstrip()}: {arguments}"
    for role, deployed in judged.deployments.items():
        yield f"starts     {role}: the Deployment {deployed.namespace}/{deployed.name}, by {judged.start}"
    if judged.start == "running":
        yield "starts     nothing: it runs already"


def _prompt(option: str, question: str, default: str) -> str:
    """Return the user's answer to a question. Raises UsageError if there is no terminal."""
    if not sys.stdin.isatty():
        raise UsageError("is required without a terminal", where=option, hint=f"for example: {option} '{default}'")
    return str(typer.prompt(question, default=default, err=True))


def _roles(text: str) -> list[Role]:
    if text.strip() == "both":
        return list(Role)
    names = text.replace(",", " ").split()
    for role in names:
        if role not in list(Role):
            raise UsageError(f"unknown role {role!r}", where="--role", hint=suggestion(role, Role))
    return [Role(role) for role in names]


def _split_command(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise UsageError(f"cannot be split into words: {error}", where="--command", hint="close the quote") from error


def _write_example(folder: Path) -> None:
    """Write the toy operator, and print how to try it. Raises UsageError if the folder exists or cannot be written."""
    try:
        folder.mkdir()
        for name in EXAMPLE_FILES:
            (folder / name).write_bytes((data.folder(f"docs/examples/{EXAMPLE}") / name).read_bytes())
    except FileExistsError as error:
        raise UsageError("exists already", where=str(folder), hint="give another name, or remove it") from error
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(folder), hint="give another path") from error
    program = "grove-conformance"
    steps = (
        f"cd {shlex.quote(display_path(folder))}",
        "go build .",
        f"{program} implementation try toy.yaml --set binary={EXAMPLE}",
        f"{program} run --implementation toy.yaml --set binary={EXAMPLE} --profile core",
    )
    typer.echo("\n  ".join([f"wrote {display_path(folder)}: {', '.join(EXAMPLE_FILES)}; next:", *steps]))
    typer.echo("It is only begun: `try` finds no Service, and `run` is not conformant. Both say what is missing.")


def _write_descriptor(file: Path, text: str) -> None:
    """Write a descriptor. Raises UsageError if the file cannot be written, or if `loading` rejects it; in the latter
    case the file is removed again."""
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(file), hint="give another path") from error
    try:
        loading.validate(file)
    except BaseException:
        file.unlink()
        raise


def _path_argument(file: Path) -> str:
    """Return a path in a form in which commands do not take it for a built-in name: with a slash or a suffix."""
    text = display_path(file)
    return text if "/" in text or text.endswith(SUFFIXES) else f"./{text}"
