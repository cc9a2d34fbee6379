"""CEL expressions of DeviceClasses and requests (DRA-10).

Quantities and versions have methods in Kubernetes. Here they are maps with one entry, so that the same methods can be
defined for them; equal maps are equal values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from reference_impl.scheduler.devices.objects import Device
from reference_impl.scheduler.quantity import thousandths

_QUANTITY, _VERSION = "quantity", "version"
_DOMAIN = re.compile(r"""(?:attributes|capacity)\s*\[\s*["']([^"']+)["']""")
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)

_MAP, _TEXT, _BOOL, _INT = cel.Type.MAP, cel.Type.STRING, cel.Type.BOOL, cel.Type.INT
Value = dict[str, Any]


class ExpressionError(Exception):
    """An expression does not compile, or has no boolean value for a device. The message contains the reason."""


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> tuple[cel.Expression, tuple[str, ...]]:
    """Return a compiled expression with the attribute domains that it names. Raises ExpressionError if the expression
    is invalid."""
    try:
        return _environment().compile(expression), tuple(_DOMAIN.findall(expression))
    except RuntimeError as error:
        raise ExpressionError(f"CEL expression {expression!r} is invalid: {_first_line(error)}") from None


def matches(expression: str, driver: str, device: Device) -> bool:
    """Return whether a device of a driver meets an expression. Raises ExpressionError if the expression cannot be
    evaluated to a boolean."""
    compiled, domains = _compiled(expression)
    attributes = {name: _attribute(value) for name, value in device.attributes.items()}
    amounts = {name: {_QUANTITY: thousandths(amount.value)} for name, amount in device.capacity.items()}
    variables = {
        "driver": driver,
        "attributes": _by_domain(attributes, driver, domains),
        "capacity": _by_domain(amounts, driver, domains),
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }
    result = compiled.eval(data={"device": variables})
    if result.type() != cel.Type.BOOL:
        raise ExpressionError(f"CEL expression {expression!r} has no boolean value: {_first_line(result.value())}")
    return bool(result.value())


def qualified(name: str, driver: str) -> str:
    """Return the name of an attribute with its domain; the domain of a name without one is the driver."""
    return name if "/" in name else f"{driver}/{name}"


def _by_domain(values: Mapping[str, Any], driver: str, named_domains: Iterable[str]) -> dict[str, Any]:
    """Return the values by domain and name. As in Kubernetes, a domain without values is an empty map."""
    domains: dict[str, dict[str, Any]] = {domain: {} for domain in (driver, *named_domains)}
    for name, value in values.items():
        domain, _, identifier = qualified(name, driver).partition("/")
        domains.setdefault(domain, {})[identifier] = value
    return domains


def _attribute(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    return {_VERSION: content} if kind == "version" else content


def _first_line(error: object) -> str:
    return str(error).splitlines()[0] if str(error) else "no value"


def _semver_key(version: str) -> tuple[Any, ...]:
    """Return a key that sorts versions by precedence. Raises ValueError for an invalid version."""
    match = _SEMVER.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} is not a semantic version")
    release = tuple(int(match[i]) for i in (1, 2, 3))
    identifiers = match[4].split(".") if match[4] else []
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in identifiers)
    return (*release, not identifiers, parts)


def _key(value: Value) -> Any:
    """Return a key by which quantities, or versions, are compared. Raises ValueError for other maps."""
    if _QUANTITY in value:
        return value[_QUANTITY]
    if _VERSION in value:
        return _semver_key(value[_VERSION])
    raise ValueError("neither a quantity nor a version")


def _compare(one: Value, other: Value) -> int:
    if one.keys() != other.keys():
        raise ValueError("a quantity and a version cannot be compared")
    one_key, other_key = _key(one), _key(other)
    return int(one_key > other_key) - int(one_key < other_key)


def _is(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except (ValueError, ArithmeticError):
        return False
    return True


def _function(name: str, *overloads: tuple[list[cel.Type], bool, cel.Type, Callable[..., Any]]) -> cel.FunctionDecl:
    """Return a function of the environment. An overload lists the types of its parameters, whether it is a method, and
    its result type."""
    return cel.FunctionDecl(
        name,
        [
            cel.Overload(id=f"{name}_{i}", parameters=parameters, is_member=is_method, return_type=result, impl=body)
            for i, (parameters, is_method, result, body) in enumerate(overloads)
        ],
    )


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    def version(text: str) -> Value:
        _semver_key(text)
        return {_VERSION: text}

    functions = [
        _function("quantity", ([_TEXT], False, _MAP, lambda text: {_QUANTITY: thousandths(text)})),
        _function("isQuantity", ([_TEXT], False, _BOOL, lambda text: _is(thousandths, text))),
        _function("semver", ([_TEXT], False, _MAP, version)),
        _function("isSemver", ([_TEXT], False, _BOOL, lambda text: _is(_semver_key, text))),
        _function("compareTo", ([_MAP, _MAP], True, _INT, _compare)),
        _function("isGreaterThan", ([_MAP, _MAP], True, _BOOL, lambda one, other: _compare(one, other) > 0)),
        _function("isLessThan", ([_MAP, _MAP], True, _BOOL, lambda one, other: _compare(one, other) < 0)),
        _function("sign", ([_MAP], True, _INT, lambda one: (one[_QUANTITY] > 0) - (one[_QUANTITY] < 0))),
        _function("asInteger", ([_MAP], True, _INT, lambda one: one[_QUANTITY] // 1000)),
        _function("isInteger", ([_MAP], True, _BOOL, lambda one: one[_QUANTITY] % 1000 == 0)),
        _function("add", ([_MAP, _MAP], True, _MAP, lambda a, b: {_QUANTITY: a[_QUANTITY] + b[_QUANTITY]})),
        _function("sub", ([_MAP, _MAP], True, _MAP, lambda a, b: {_QUANTITY: a[_QUANTITY] - b[_QUANTITY]})),
        _function("major", ([_MAP], True, _INT, lambda one: _key(one)[0])),
        _function("minor", ([_MAP], True, _INT, lambda one: _key(one)[1])),
        _function("patch", ([_MAP], True, _INT, lambda one: _key(one)[2])),
    ]
    extensions = [ext_bindings.ExtBindings(), ext_optional.ExtOptional(), ext_strings.ExtStrings()]
    return cel.NewEnv(variables={"device": cel.Type.DYN}, functions=functions, extensions=extensions)
