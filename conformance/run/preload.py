"""Imports and collects everything that runs need, in a process from which many runs are forked.

The work is done when this module is imported; it is meant for `multiprocessing`'s forkserver. The conformance tests
with the data that they read at import, the requirements, and the CRDs of the reference stay in memory, so a forked run
is ready to collect in a fraction of the time.
"""

from __future__ import annotations

import contextlib
import gc
import tempfile
from importlib import import_module
from pathlib import Path

from conformance.errors import HarnessError
from conformance.run import launch
from conformance.suite.registry import requirement
from conformance.suite.session import worker
from conformance.suite.settings import RunSettings

for _name in ("conformance.cli", "conformance.commands.run", "hypothesis", "xdist.plugin"):
    import_module(_name)
# If tests cannot be collected, each run reports that where the user sees it.
with contextlib.suppress(HarnessError), tempfile.TemporaryDirectory() as _folder:
    _settings = RunSettings(run="preload", directory=_folder, implementation="reference")
    requirement.load(Path(_settings.registry))
    worker.load_implementation(_settings)
    launch.collect(_settings)
# All of these objects live on: the garbage collector of a forked run need not scan them, which would copy their pages.
gc.collect()
gc.freeze()
