"""Imports and computes what fake runs need, in the process from which `faked` forks them (`multiprocessing`'s
forkserver imports this module). It would take more than half of the CPU time of a run."""

from __future__ import annotations

import gc
from importlib import import_module

from conformance.pages import render
from conformance.report import defects, page

for _name in (
    "conformance.cli",
    "conformance.run.launch",
    "conformance.suite.session.worker",
    "xdist.plugin",
):
    import_module(_name)
defects.rows()
for _name in (page.TEMPLATE.name, "base.html", "parts.html"):
    render.load(page.TEMPLATE.with_name(_name))
# All of these objects live on: the garbage collector of a run need not scan them, which would copy their pages.
gc.collect()
gc.freeze()
