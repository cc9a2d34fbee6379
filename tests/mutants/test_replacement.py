"""Tests that a replacement replaces something that exists, accepts the same calls, and records that it was called."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mutants import replacement
from reference_impl.plan import gates

LIMIT = 1


class Product:
    """The kinds of attributes that a mutant may replace."""

    def method(self) -> int:
        return 1

    @property
    def attribute(self) -> int:
        return 1

    @classmethod
    def of_class(cls) -> int:
        return 1

    @staticmethod
    def static() -> int:
        return 1

    async def waiting(self) -> int:
        return 1

    def limit(self) -> int:
        return LIMIT


@pytest.fixture
def product() -> type[Product]:
    """Return a new class for each test, because replacements are not undone."""
    return types.new_class("Product", (), exec_body=lambda namespace: namespace.update(vars(Product)))


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file to which replacements report their calls."""
    file = tmp_path / "calls"
    monkeypatch.setenv(replacement.CALLS, str(file))
    return file


def test_replacing_a_missing_attribute_raises_an_error() -> None:
    with pytest.raises(AttributeError):
        replacement.replace(gates, "no_such_function", None)


def test_a_replacement_with_other_parameters_raises_an_error() -> None:
    with pytest.raises(TypeError):
        replacement.replace(gates, "pods_to_ungate", lambda clique: [])


@pytest.mark.parametrize(
    ("decorator", "function"),
    [
        (replacement.instead_of, lambda self: 2),
        (replacement.around, lambda original, self: original(self) + 1),
        (replacement.on_result_of, lambda result, self: result + 1),
    ],
)
def test_a_decorated_function_takes_effect_when_it_is_armed(
    product: type[Product], calls: Path, decorator: Callable[..., Any], function: Callable[..., int]
) -> None:
    with pytest.raises(AttributeError):
        decorator(product, "missing")
    arm = decorator(product, "method")(function)
    assert product().method() == 1
    arm()
    assert (product().method(), replacement.uncalled(calls)) == (2, set())


def test_a_function_around_another_keeps_what_it_remembers(product: type[Product]) -> None:
    def counted(original: Callable[..., int], calls: list[int], self: Product) -> int:
        calls.append(original(self))
        return len(calls)

    arm = replacement.around(product, "method", memory=list)(counted)
    arm()
    assert [product().method(), product().method()] == [1, 2]
    arm()
    assert product().method() == 1


def test_a_function_around_another_must_take_its_arguments(product: type[Product]) -> None:
    with pytest.raises(TypeError):
        replacement.around(product, "method")(lambda original, self, other: 2)()


def test_data_cannot_replace_a_property(product: type[Product]) -> None:
    with pytest.raises(TypeError, match=r"Product\.attribute is replaced by data"):
        replacement.replace(product, "attribute", 2)


@pytest.mark.parametrize(
    ("name", "wrong", "call"),
    [
        ("method", lambda self: 2, lambda product: product().method()),
        ("attribute", property(lambda self: 2), lambda product: product().attribute),
        ("of_class", classmethod(lambda cls: 2), lambda product: product.of_class()),
        ("static", staticmethod(lambda: 2), lambda product: product.static()),
        ("waiting", lambda self: asyncio.sleep(0, 2), lambda product: asyncio.run(product().waiting())),
    ],
)
def test_a_call_is_recorded(product: type[Product], calls: Path, name, wrong, call) -> None:
    replacement.replace(product, name, wrong)
    assert replacement.uncalled(calls) == {f"{Product.__module__}.Product.{name}"}
    assert call(product) == 2
    assert replacement.uncalled(calls) == set()


def test_each_replacement_must_be_called(product: type[Product], calls: Path) -> None:
    replacement.replace(product, "method", lambda self: 2)
    replacement.replace(product, "attribute", property(lambda self: 2))
    product().method()
    assert replacement.uncalled(calls) == {f"{Product.__module__}.Product.attribute"}


def test_data_counts_as_called_when_its_reader_is_called(product: type[Product], calls: Path, monkeypatch) -> None:
    module = types.SimpleNamespace(__name__="module", __module__="a", LIMIT=1)
    replacement.replace_data(module, "LIMIT", 2, read_by=(product, "limit"))
    assert module.LIMIT == 2
    assert replacement.uncalled(calls) == {f"{Product.__module__}.Product.limit"}
    product().limit()
    assert replacement.uncalled(calls) == set()


def test_a_reader_that_does_not_use_the_data_raises_an_error(product: type[Product]) -> None:
    module = types.SimpleNamespace(LIMIT=1)
    with pytest.raises(TypeError, match=r"Product\.method does not read LIMIT"):
        replacement.replace_data(module, "LIMIT", 2, read_by=(product, "method"))
    assert module.LIMIT == 1


def test_no_replacement_differs_from_all_replacements_called(calls: Path) -> None:
    assert replacement.uncalled(calls) is None


def test_without_the_variable_nothing_is_written(product: type[Product], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(replacement.CALLS, raising=False)
    replacement.replace(product, "method", lambda self: 2)
    assert product().method() == 2


def test_an_alteration_must_make_a_difference(product: type[Product], calls: Path) -> None:
    replacement.alter(product, "method", lambda result, self: result)
    assert product().method() == 1
    assert replacement.uncalled(calls) == {f"{Product.__module__}.Product.method"}
    replacement.alter(product, "method", lambda result, self: result + 1)
    replacement.alter(product, "method", lambda result, self: result * 10)
    assert product().method() == 20
    assert replacement.uncalled(calls) == set()


def test_a_coroutine_is_altered_when_it_ends(calls: Path) -> None:
    async def right() -> int:
        return 1

    module = types.SimpleNamespace(__name__="module", __module__="a", right=right)
    replacement.alter(module, "right", lambda result: result + 1)
    assert asyncio.run(module.right()) == 2
    assert replacement.uncalled(calls) == set()


def test_records_name_the_armed_switch(product: type[Product], calls: Path) -> None:
    with replacement.noted_as("odd"):
        replacement.alter(product, "method", lambda result, self: 2)
    assert replacement.uncalled(calls) == {f"odd: {Product.__module__}.Product.method"}
