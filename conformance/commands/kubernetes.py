"""The options of all commands that start clusters: the version of Kubernetes and its features."""

from __future__ import annotations

from typing import Annotated

import typer

Kubernetes = Annotated[
    str,
    typer.Option(
        "--kubernetes", metavar="VERSION", help="Version of Kubernetes, for example 1.37: see `cluster versions`."
    ),
]
