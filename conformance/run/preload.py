"""Import and collect everything that runs need, in a process from which many runs are forked.

Importing this module has the effect: it is for `multiprocessing`'s forkserver. The conformance tests with the data that
they read at import, the requirements, and the CRDs of the reference stay in memory, so a forked run is ready to collect
in a fraction of the time.
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
# Tests that cannot be collected are reported by each run, where the user sees it.
with contextlib.suppress(HarnessError), tempfile.TemporaryDirectory() as _folder:
    _settings = RunSettings(run="preload", directory=_folder, implementation="reference")
    requirement.load(Path(_settings.registry))
    worker.load_implementation(_settings)
    launch.collect(_settings)
# All of it stays: the garbage collector of a forked run need not look at it, nor copy it by doing so.
gc.collect()
gc.freeze()
