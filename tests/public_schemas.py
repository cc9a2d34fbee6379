"""The JSON schemas of the formats that users write, for their editors. `make docs` generates the files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance import formats
from conformance.cluster.fleets import FleetFormat
from conformance.cluster.node_profiles import ProfileFormat
from conformance.cluster.pod_behaviors import Behaviors
from conformance.data import folder
from conformance.implementation.descriptor import DescriptorFormat
from conformance.publishing import published

PUBLIC: Mapping[Path, Any] = {
    Path(published.__file__).with_name("published.schema.json"): published.ImplementationFormat,
    folder("fixtures") / "implementations" / "implementation.schema.json": DescriptorFormat,
    folder("kwok-profiles") / "nodes.schema.json": ProfileFormat,
    folder("kwok-profiles") / "behaviors.schema.json": Behaviors,
    folder("kwok-profiles") / "fleets.schema.json": FleetFormat,
}


def text(kind: Any) -> str:
    """Return the content of the file with the schema of a type."""
    return json.dumps(json.loads(formats.schema(kind)), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for path, kind in PUBLIC.items():
        path.write_text(text(kind), "utf-8")
