"""`grove-conformance`: the commands, and how errors become exit codes (`errors.Exit`).

A command's module is imported when the command is called, because most commands do not need the imports of the cluster.
"""

from __future__ import annotations

import errno
import io
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module, metadata
from typing import Annotated, Any, TextIO, cast

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from conformance import credentials, disk
from conformance.errors import Exit, HarnessError, UsageError

COMMANDS = {
    "cluster": ("conformance.commands.cluster", "app"),
    "assets": ("conformance.commands.cluster", "assets"),
    "validate": ("conformance.validate", "validate"),
    "scale": ("conformance.commands.scale", "app"),
    "nemesis": ("conformance.commands.nemesis", "app"),
    "lab": ("conformance.commands.lab", "app"),
    "scheduler": ("conformance.commands.scheduler", "app"),
    "run": ("conformance.commands.run", "run"),
    "implementation": ("conformance.commands.implementation", "app"),
    "report": ("conformance.commands.report", "app"),
    "findings": ("conformance.commands.findings", "app"),
    "list": ("conformance.commands.requirements", "list_requirements"),
    "explain": ("conformance.commands.requirements", "explain"),
    "docs": ("conformance.commands.requirements", "docs"),
}
"""Command → its module, and the name of its function or of the typer application with its subcommands."""


class _Imported(Mapping[str, Any]):
    """The commands of `COMMANDS`. Reading one imports its module."""

    def __getitem__(self, name: str) -> Any:
        module, attribute = COMMANDS[name]
        exported = getattr(import_module(module), attribute)
        if not isinstance(exported, typer.Typer):
            function, exported = exported, typer.Typer(add_completion=False)
            exported.command(name)(function)
        exported.rich_markup_mode = None  # as in the main help: boxes would leave no room for text
        exported.info.cls = Commands
        command = typer.main.get_command(exported)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(TyperGroup):
    """A command group whose help shows the first sentence of each command in full, even in a narrow terminal."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [
            (name, command.get_short_help_str(limit=1000)) for name, command in commands.items() if command is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LazyCommands(Commands):
    """A command group that imports a command only when the command is called. The group's help imports all commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = cast(Any, _Imported())


app = typer.Typer(
    cls=LazyCommands,
    help="Judge implementations of the Grove API on a fake GPU cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"grove-conformance {metadata.version('grove-conformance')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Judge implementations of the Grove API on a fake GPU cluster."""


_TYPER_INTERRUPTED = 130
"""typer's exit code after Ctrl-C."""


def main() -> None:
    """Run the program. SIGTERM and SIGHUP are handled like Ctrl-C, so that a command cleans up the processes and
    clusters that it started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    sys.exit(run_despite_output_errors(lambda: app(standalone_mode=False)))


class _Output(io.FileIO):
    """An open file descriptor. Output that cannot be written, because the reader or the terminal is gone or a disk is
    full, is dropped; `problem` is the first error."""

    problem: OSError | None = None

    def write(self, data: Any) -> int:
        """Write bytes, or drop them."""
        try:
            return super().write(data)
        except OSError as error:
            self.problem = self.problem or error
            return len(data)


def run_despite_output_errors(command: Callable[[], object]) -> int:
    """Run a command like `run`, and let it finish even if its output cannot be written. In this case the exit code is
    Exit.OUTPUT, unless the command itself has failed."""
    outputs: list[_Output] = []

    def error_tolerant(stream: TextIO) -> TextIO:
        try:
            output = _Output(stream.fileno(), "w", closefd=False)
        except (OSError, ValueError):  # closed, or not backed by a descriptor
            return stream
        outputs.append(output)
        options: dict[str, Any] = {"encoding": stream.encoding, "errors": "replace", "line_buffering": True}
        return io.TextIOWrapper(io.BufferedWriter(output), **options)

    original_streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream and error_tolerant(stream) for stream in original_streams)
    try:
        code = run(command)
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        problems = [output.problem for output in outputs if output.problem is not None]
        if failure := next((problem for problem in problems if problem.errno != errno.EPIPE), None):
            print(
                f"grove-conformance: not everything could be printed: {failure.strerror}", file=sys.stderr, flush=True
            )
    finally:
        sys.stdout, sys.stderr = original_streams
    return Exit.OUTPUT if problems and code == Exit.CONFORMANT else code


def run(command: Callable[[], object]) -> int:
    """Run a command; turn every error into one line on standard error and an exit code."""
    try:
        result = command()
        if result == _TYPER_INTERRUPTED:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else Exit.CONFORMANT
    except (UsageError, HarnessError) as error:
        if isinstance(error, UsageError):
            disk.remove_empty_folders()
        print(f"grove-conformance: {credentials.redact(str(error))}", file=sys.stderr)
        return error.exit_code
    except TyperException as error:  # wrong options: typer has its own messages for these
        text = error.format_message()
        if text.startswith("Usage: "):  # the help of a group that was called without a command
            print(text, file=sys.stderr)
        else:
            text = text.replace(": Value error, ", ": ").removesuffix(".")  # pydantic's own wording
            print(f"grove-conformance: {text} — see --help", file=sys.stderr)
        return Exit.USAGE
    except (KeyboardInterrupt, typer.Abort):
        print("grove-conformance: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except Exception as error:
        with tempfile.NamedTemporaryFile(
            "w", prefix="grove-conformance-", suffix=".log", delete=False, encoding="utf-8"
        ) as log:
            log.write(credentials.redact(traceback.format_exc()))
        problem = " ".join(credentials.redact(f"{type(error).__name__}: {error}").split())
        print(f"grove-conformance: {problem} (details: {log.name})", file=sys.stderr)
        return Exit.HARNESS


if __name__ == "__main__":
    main()
