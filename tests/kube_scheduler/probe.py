"""A pod that has exactly one feasible node once the scheduler has seen the last object of each kind.

A watch delivers the objects of one kind in order, so the scheduler has then seen all objects of the scene.
"""

from __future__ import annotations

from pathlib import Path
from string import Template

import yaml

from tests.kube_scheduler.draw import Manifest

TEXT = Template(Path(__file__).with_name("probe.yaml").read_text(encoding="utf-8"))
NAMESPACE, EXPECTED = "probe", ["probe"]


def probe(number: int, attempt: int = 0) -> Manifest:
    """Return the last objects of each kind by plural name, and the pod of an attempt, under `pod`."""
    documents: Manifest = yaml.safe_load(TEXT.substitute(tag=f"probe-{number}", attempt=attempt))
    return documents
