"""Replacement of code in the running process, with notes on whether a replacement was called and made a difference.

A mutant whose replacement is never called proves nothing, because the suite has judged the unchanged reference. Each
replacement therefore appends lines to the file named by the environment variable `GROVE_MUTANT_CALLS`: a line when it
is put in place, and a line when it is first called. `alter` appends another line when a result first differs from the
original result. `prove` reads the file after the run. Without the variable, nothing is written.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CALLS = "GROVE_MUTANT_CALLS"
"""The environment variable that names the file for the notes."""
_REPLACED, _CALLED, _ALTERS, _ALTERED = "replaced", "called", "alters", "altered"

Original = Callable[..., Any]
"""A function that a mutant or a variant has replaced and may call."""

_armed = ""
"""The mutant or variant that is being armed, for the notes about its replacements."""


@contextlib.contextmanager
def noted_as(name: str) -> Iterator[None]:
    """Attribute the replacements that are put in place inside the block to this mutant or variant."""
    global _armed
    _armed = name
    try:
        yield
    finally:
        _armed = ""


def replace(target: Any, name: str, wrong: Any) -> None:
    """Replace a function, method or property.

    Raises AttributeError if `target` has no such attribute, and TypeError if `wrong` cannot be called like the
    original. When the code changes, a mutant therefore cannot silently become a no-op, or a crash that any check would
    notice.
    """
    original = getattr(target, name)
    called = wrong.__get__(None, target) if isinstance(wrong, classmethod | staticmethod) else wrong
    if inspect.isroutine(original) and inspect.isroutine(called):
        parameters = inspect.signature(original).parameters.values()
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        inspect.signature(called).bind(*positional, **{p.name: None for p in parameters if p.kind == p.KEYWORD_ONLY})
    setattr(target, name, _noted(wrong, _named(target, name)))


def alter(target: Any, name: str, change: Callable[..., Any]) -> None:
    """Make a function or method, which may be a coroutine function, return `change(result, *arguments)`.

    Several changes of one function are applied in sequence. `change` must return a new value instead of changing the
    result in place, because a run must show that some result differed.
    """
    original = getattr(target, name)
    full_name = _named(target, name)
    note = _noted_once(_ALTERED, full_name)

    def changed(result: Any, *arguments: Any, **named: Any) -> Any:
        other = change(result, *arguments, **named)
        if other != result:
            note()
        return other

    @functools.wraps(original)
    def altered(*arguments: Any, **named: Any) -> Any:
        return changed(original(*arguments, **named), *arguments, **named)

    @functools.wraps(original)
    async def altered_later(*arguments: Any, **named: Any) -> Any:
        return changed(await original(*arguments, **named), *arguments, **named)

    _note(_ALTERS, full_name)
    replace(target, name, altered_later if inspect.iscoroutinefunction(original) else altered)


def instead_of(target: Any, name: str) -> Callable[[Callable[..., Any]], Callable[[], None]]:
    """Decorate the function that `replace` puts in place of `target.name` when the result, a function of the same name,
    is called."""
    return _arming(target, name, lambda wrong: replace(target, name, wrong))


def around(
    target: Any, name: str, *, memory: Callable[[], Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[[], None]]:
    """Decorate a function like `instead_of` does, but pass it the original function as its first argument, and the
    object that `memory` has returned when it was armed, if it is given, as its second one."""
    return _arming(target, name, lambda wrong: _surround(target, name, wrong, () if memory is None else (memory(),)))


def on_result_of(target: Any, name: str) -> Callable[[Callable[..., Any]], Callable[[], None]]:
    """Decorate the change that `alter` makes to the results of `target.name`, like `instead_of` does."""
    return _arming(target, name, lambda change: alter(target, name, change))


def _arming(target: Any, name: str, act: Callable[[Any], None]) -> Callable[..., Callable[[], None]]:
    getattr(target, name)

    def decorate(function: Callable[..., Any]) -> Callable[[], None]:
        def arm() -> None:
            act(function)

        arm.__name__ = function.__name__
        return arm

    return decorate


def _surround(target: Any, name: str, function: Callable[..., Any], memory: tuple[Any, ...]) -> None:
    first, signature = (getattr(target, name), *memory), inspect.signature(function)

    @functools.wraps(function)
    def wrong(*arguments: Any, **named: Any) -> Any:
        return function(*first, *arguments, **named)

    wrong.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values()][len(first) :]
    )
    replace(target, name, wrong)


def replace_unnoted(target: Any, name: str, wrong: Any) -> None:
    """Replace a function or method that a run need not call, because another replacement of the same mutant takes
    effect before it."""
    getattr(target, name)
    setattr(target, name, wrong)


def replace_data(target: Any, name: str, wrong: Any, *, read_by: tuple[Any, str]) -> None:
    """Replace a constant. Reads of data cannot be noted, so the constant counts as used when the function `read_by` is
    called.

    `read_by` is the owner of the function and its name. Raises TypeError if that function does not name the constant.
    """
    getattr(target, name)
    owner, reader = read_by
    if name not in inspect.unwrap(inspect.getattr_static(owner, reader)).__code__.co_names:
        raise TypeError(f"{_named(owner, reader)} does not read {name}")
    setattr(target, name, wrong)
    note_calls(owner, reader)


def note_calls(owner: Any, name: str) -> None:
    """Note calls of a function that is not replaced, because it uses data that a mutant changes in place."""
    setattr(owner, name, _noted(inspect.getattr_static(owner, name), _named(owner, name)))


def uncalled(file: Path) -> set[str] | None:
    """Return the replacements that were put in place but were never called or never made a difference, or None if
    nothing was replaced."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    noted: dict[str, set[str]] = {word: set() for word in (_REPLACED, _CALLED, _ALTERS, _ALTERED)}
    for line in lines:
        word, _, name = line.partition(" ")
        noted[word].add(name)
    idle = (noted[_REPLACED] - noted[_CALLED]) | (noted[_ALTERS] - noted[_ALTERED])
    return idle if noted[_REPLACED] else None


def _named(target: Any, name: str) -> str:
    module = "" if inspect.ismodule(target) else f"{target.__module__}."
    replaced = f"{module}{getattr(target, '__qualname__', target.__name__)}.{name}"
    return f"{_armed}: {replaced}" if _armed else replaced


def _noted(wrong: Any, name: str) -> Any:
    """Return `wrong` wrapped so that its first call is noted."""
    if isinstance(wrong, property):
        assert wrong.fget is not None
        return property(_noted(wrong.fget, name), wrong.fset, wrong.fdel)
    if isinstance(wrong, classmethod | staticmethod):
        return type(wrong)(_noted(wrong.__func__, name))
    if not callable(wrong):
        raise TypeError(f"{name} is replaced by data, whose reads cannot be noted (hint: replace_data, or a property)")
    _note(_REPLACED, name)
    return _noting(wrong, name)


def _noting(wrong: Callable[..., Any], name: str) -> Callable[..., Any]:
    note = _noted_once(_CALLED, name)

    @functools.wraps(wrong)
    def noting(*arguments: Any, **named: Any) -> Any:
        note()
        return wrong(*arguments, **named)

    return noting


def _noted_once(word: str, name: str) -> Callable[[], None]:
    """Return a function that writes a note with `word` when it is first called."""
    pending_words = [word]

    def note() -> None:
        if pending_words:
            _note(pending_words.pop(), name)

    return note


def _note(word: str, name: str) -> None:
    if file := os.environ.get(CALLS):
        with Path(file).open("a", encoding="utf-8") as notes:
            notes.write(f"{word} {name}\n")
