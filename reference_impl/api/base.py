"""Parts shared by all models: the base class, the JSON form, and types with constraints for the CRDs."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from reference_impl.api.schema import crd

PodSpec = dict[str, Any]


def to_json(value: Any) -> Any:
    """Return a model as JSON values, without the fields that are None."""

    def present(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: present(inner) for key, inner in item.items() if inner is not None}
        if isinstance(item, list):
            return [present(inner) for inner in item]
        return item

    return present(msgspec.to_builtins(value))


class Model(msgspec.Struct, rename="camel", kw_only=True):
    """Base class of all models: JSON names are in camel case, and None stands for an absent field."""


Int = Annotated[int, crd(format="int32")]
Long = Annotated[int, crd(format="int64")]
Required = crd(required=True)
Counter = Annotated[int, crd(required=True, default=0, format="int32")]
Time = Annotated[str, crd(format="date-time")]
Domain = Annotated[str, crd(minLength=1, maxLength=63, pattern="^[a-z][a-z0-9-]*$")]
