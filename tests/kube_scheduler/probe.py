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


class Probe:
    """The objects and the pods of one probe, which have its number in their names or labels."""

    def __init__(self, number: int) -> None:
        self._tag = f"probe-{number}"

    def objects(self, plural: str) -> list[Manifest]:
        """Return the objects of one kind, to be created after all others of the kind."""
        objects: list[Manifest] = self._documents(0)[plural]
        return objects

    def pod(self, number: int) -> Manifest:
        """Return a pod to be placed."""
        pod: Manifest = self._documents(number)["pod"]
        return pod

    def _documents(self, number: int) -> Manifest:
        documents: Manifest = yaml.safe_load(TEXT.substitute(tag=self._tag, number=number))
        return documents
