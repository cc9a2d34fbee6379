"""`grove-conformance`: the commands, and how errors become exit codes (errors.Exit). Thin: parses, calls, prints."""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Callable
from importlib import metadata
from typing import Annotated

import typer
from typer.exceptions import TyperException

from conformance.commands import cluster
from conformance.commands import run as suite_commands
from conformance.commands.scale import scale
from conformance.errors import Exit, HarnessError, UsageError
from conformance.validate import validate

app = typer.Typer(
    help="Judge implementations of the Grove API on a fake GPU cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(cluster.app, name="cluster")
app.command()(cluster.assets)
app.command("validate")(validate)
app.command("scale")(scale)
suite_commands.mount(app)


def _version(wanted: bool) -> None:
    if wanted:
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
"""What typer returns after Ctrl-C."""


def main() -> None:
    """Entry point of the program."""
    sys.exit(run(lambda: app(standalone_mode=False)))


def run(command: Callable[[], object]) -> int:
    """Run a command; turn every error into one line on standard error and an exit code."""
    try:
        result = command()
        if result == _TYPER_INTERRUPTED:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else Exit.CONFORMANT
    except (UsageError, HarnessError) as error:
        print(f"grove-conformance: {error}", file=sys.stderr)
        return error.exit_code
    except TyperException as error:  # wrong options: typer has its own messages for them
        if text := error.format_message():  # empty after the help that is printed when there are no arguments
            print(f"grove-conformance: {text} — see --help", file=sys.stderr)
        return Exit.USAGE
    except (KeyboardInterrupt, typer.Abort):
        print("grove-conformance: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except Exception as error:
        with tempfile.NamedTemporaryFile(
            "w", prefix="grove-conformance-", suffix=".log", delete=False, encoding="utf-8"
        ) as log:
            log.write(traceback.format_exc())
        what = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"grove-conformance: {what} (details: {log.name})", file=sys.stderr)
        return Exit.HARNESS


if __name__ == "__main__":
    main()
