"""The command line that repeats a test of a run."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from conformance.cluster import policies
from conformance.cluster.assets import versions
from conformance.suite.settings import RunSettings


def command(settings: RunSettings) -> str:
    """Return the command line that repeats a test of this run, without the name of the test. The run's selection is
    included because it decides what the test judges, and the number of repetitions because random numbers depend on
    it."""
    arguments = [_program(), "run", "--implementation", settings.implementation]
    for name, value in settings.parameters.items():
        arguments += ["--set", f"{name}={value}"]
    arguments += ["--from", settings.earlier] if settings.earlier else []
    for name, value in settings.earlier_parameters.items():
        arguments += ["--from-set", f"{name}={value}"]
    arguments += ["--baseline", settings.baseline] if settings.baseline else []
    for option, values in (("--profile", settings.profiles), ("--id", settings.ids), ("--skip", settings.skip)):
        for value in values:
            arguments += [option, value]
    arguments += ["--repeat", str(settings.repeat)] if settings.repeat > 1 else []
    arguments += settings.cluster_features.options()
    arguments += [argument for policy in settings.policies for argument in (policies.OPTION, policy)]
    arguments += ["--kubernetes", settings.kubernetes] if other_version(settings) else []
    arguments += ["--time-scale", f"{settings.time_scale:g}", "--seed", str(settings.seed)]
    if settings.cluster == "existing":
        arguments += ["--cluster", "existing", *settings.kubeconfig_options]
        arguments += ["--install-stages"] if settings.install_stages else []
    return shlex.join(arguments)


def other_version(settings: RunSettings) -> str:
    """Return the name and version of Kubernetes, or an empty string for the default version or an existing cluster."""
    is_default = settings.kubernetes in ("", versions()["kubernetes"])
    return "" if is_default else f"Kubernetes {settings.kubernetes}"


def _program() -> str:
    """Return the command that starts this program: just its name if it was started from PATH, and otherwise its
    path."""
    name = "grove-conformance"
    path = shutil.which(name)
    script = Path(sys.argv[0])
    return name if script.name != name or (path and script.samefile(path)) else str(script)
