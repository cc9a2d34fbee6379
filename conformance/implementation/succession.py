"""One implementation that takes over from another: `grove-conformance run --implementation B --from A`."""

from __future__ import annotations

import msgspec

from conformance.errors import UsageError
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.fields import Upgrade

FEATURE = "upgrade"


def take_over(judged: Descriptor, earlier: Descriptor) -> Descriptor:
    """Return `judged` with `earlier` as the only version from which it takes over, both with the scheduler name of
    `judged`. The CRDs of `judged` are installed; the webhooks are those of the running operator. Raises UsageError if
    one of the two starts no operator."""
    for descriptor in (judged, earlier):
        if Role.OPERATOR not in descriptor.processes:
            raise UsageError(
                f"{descriptor.name} starts no operator",
                where=descriptor.document.location("processes"),
                hint="--from is for two operators that the suite starts",
            )
    predecessor = msgspec.structs.replace(earlier, scheduler_name=judged.scheduler_name)
    return msgspec.structs.replace(
        judged,
        features=judged.features | {FEATURE},
        upgrades=(Upgrade(earlier.name, f"{earlier.name} {earlier.version}", {}),),
        predecessor=predecessor,
    )
