"""The entry points of the programs, and the command that runs one of our modules in a separate process."""

from __future__ import annotations

import runpy
import sys

from grove_conformance import precedence

_USAGE = 4
"""The exit code of a usage error, `conformance.errors.Exit.USAGE`, which cannot be imported here."""


def command(module: str, *arguments: str) -> list[str]:
    """Return a command line that runs one of our modules as `python -m` does, but never another module of the same
    name."""
    return [sys.executable, "-P", "-m", "grove_conformance.start", module, *arguments]


def suite() -> None:
    """Run `grove-conformance`."""
    _take_precedence()
    from conformance.cli import main

    main()


def reference() -> None:
    """Run `grove-reference`."""
    _take_precedence()
    from reference_impl.cli import main

    main()


def _take_precedence() -> None:
    try:
        precedence.import_packages()
    except ImportError as error:
        sys.stderr.write(f"grove-conformance: {error}\n")
        sys.exit(_USAGE)


if __name__ == "__main__":
    _take_precedence()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
