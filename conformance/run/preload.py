"""Import and collect everything that runs need, in a process from which many runs are forked.

Importing this module has the effect: it is for `multiprocessing`'s forkserver. The conformance tests and the data that
they read at import stay in memory, so each forked run collects them in a fraction of the time.
"""

from __future__ import annotations

import contextlib
import gc
import tempfile
from importlib import import_module

from conformance.errors import HarnessError
from conformance.run import launch
from conformance.suite.settings import RunSettings

for _name in ("conformance.cli", "conformance.commands.run", "allure_pytest.plugin", "hypothesis", "xdist.plugin"):
    import_module(_name)
# Tests that cannot be collected are reported by each run, where the user sees it.
with contextlib.suppress(HarnessError), tempfile.TemporaryDirectory() as _folder:
    launch.collect(RunSettings(run="preload", directory=_folder, implementation=""))
# All of it stays: the garbage collector of a forked run need not look at it, nor copy it by doing so.
gc.collect()
gc.freeze()
