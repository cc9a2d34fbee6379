"""Generates structural CRD schemas from the typed models.

Whatever msgspec cannot express (CRD defaults, list maps, required fields that decoding does not require, CEL rules) is
in the `crd(…)` annotations of the models. The pod spec comes from the OpenAPI document of the running API server, so
that it fits the server's version.
"""

from __future__ import annotations

from typing import Any

import msgspec

OPENAPI = "x-openapi"
_REQUIRED = "x-required"
_DEFAULT = "x-default"

Schema = dict[str, Any]


def crd(*, required: bool = False, default: Any = None, openapi: str | None = None, **schema: Any) -> msgspec.Meta:
    """Return constraints of a field that its type does not express. `list_map="name"` and `rules=[…]` become the
    Kubernetes extensions for list maps and CEL rules."""
    extra: Schema = {}
    if required:
        extra[_REQUIRED] = True
    if default is not None:
        extra[_DEFAULT] = default
    if openapi is not None:
        extra[OPENAPI] = openapi
    if keys := schema.pop("list_map", None):
        extra["x-kubernetes-list-type"] = "map"
        extra["x-kubernetes-list-map-keys"] = [keys]
    if list_type := schema.pop("list_type", None):
        extra["x-kubernetes-list-type"] = list_type
    if rules := schema.pop("rules", None):
        extra["x-kubernetes-validations"] = rules
    extra.update(schema)
    return msgspec.Meta(extra_json_schema=extra)


def structural(model: type[msgspec.Struct], openapi: dict[str, Schema]) -> Schema:
    """Return the structural schema of a kind. `openapi` holds `components.schemas` of the API server's OpenAPI
    documents (core/v1 and others), by name. Raises KeyError for a type that is missing there."""
    (root,), components = msgspec.json.schema_components([model], ref_template="#/{name}")
    schema = _resolved(root, components, openapi)
    for field in ("apiVersion", "kind"):
        schema["properties"][field] = {"type": "string"}
    schema["properties"]["metadata"] = {"type": "object"}
    return schema


def _resolved(schema: Schema, components: dict[str, Schema], openapi: dict[str, Schema]) -> Schema:
    """Return a schema of our models with references resolved and with msgspec's keywords replaced by the keywords of
    CRDs."""
    if OPENAPI in schema:
        return _foreign(openapi[schema[OPENAPI]], openapi)
    if "anyOf" in schema:  # `X | None`
        (inner,) = [option for option in schema["anyOf"] if option != {"type": "null"}]
        return _resolved(
            {**inner, **{k: v for k, v in schema.items() if k not in ("anyOf", "default")}}, components, openapi
        )
    if "$ref" in schema:
        target = components[schema["$ref"].removeprefix("#/")]
        return _resolved(
            {**target, **{k: v for k, v in schema.items() if k not in ("$ref", "default")}}, components, openapi
        )
    result: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: _resolved(field, components, openapi) for name, field in value.items()}
        elif key == "items" or (key == "additionalProperties" and isinstance(value, dict)):
            result[key] = _resolved(value, components, openapi)
        elif key == _DEFAULT:
            result["default"] = value
        elif key in ("title", "description", "default", "required", _REQUIRED):
            continue
        else:
            result[key] = value
    if "enum" in result and "type" not in result:
        result["type"] = "string"
    if "properties" in result:
        required = sorted(n for n, f in schema["properties"].items() if _is_required(f))
        if required:
            result["required"] = required
    return result


def _is_required(field: Schema) -> bool:
    return bool(field.get(_REQUIRED))


_KEPT_KEYWORDS = {
    "type",
    "format",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
}
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


def _foreign(schema: Schema, openapi: dict[str, Schema]) -> Schema:
    """Return a Kubernetes schema as a structural schema: references inlined, descriptions and generated defaults
    removed."""
    reference = schema.get("$ref")
    if reference is None and len(schema.get("allOf", ())) == 1:
        reference = schema["allOf"][0].get("$ref")
    if reference is not None:
        name = reference.removeprefix("#/components/schemas/")
        if name in (QUANTITY, INT_OR_STRING):
            union: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
            return {**union, "pattern": QUANTITY_PATTERN} if name == QUANTITY else union
        return _foreign(openapi[name], openapi)
    result: Schema = {key: value for key, value in schema.items() if key in _KEPT_KEYWORDS}
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        inner = _foreign(field, openapi)
        default = field.get("default")
        # `{}`, 0 and, for required strings, "" are Go's zero values and not defaults of the API.
        if isinstance(default, str | bool) and (default or name not in required):
            inner["default"] = default
        result.setdefault("properties", {})[name] = inner
    if "items" in schema:
        result["items"] = _foreign(schema["items"], openapi)
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        result["additionalProperties"] = _foreign(extra, openapi)
    if not result:
        result["x-kubernetes-preserve-unknown-fields"] = True
    return result
