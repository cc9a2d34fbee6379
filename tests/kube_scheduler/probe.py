"""A pod that has exactly one feasible node after the scheduler has seen the last object of each kind.

A watch delivers the objects of one kind in order, so the scheduler has seen all objects of the scene by that time.
"""

from __future__ import annotations

from pathlib import Path
from string import Template

import yaml

from tests.kube_scheduler.draw import Manifest

TEXT = Template(Path(__file__).with_name("probe.yaml").read_text(encoding="utf-8"))
NAMESPACE, EXPECTED = "probe", ["probe"]


def probe(number: int, attempt: int = 0) -> Manifest:
    """Return the last object of each kind by plural resource name, and the pod of this attempt under `pod`."""
    documents: Manifest = yaml.safe_load(TEXT.substitute(tag=f"probe-{number}", attempt=attempt))
    return documents
