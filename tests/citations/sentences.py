"""`make lint`: who owes what a requirement asks for.

"Nothing MUST be deleted" permits deleting (RFC 2119), and a sentence about an object leaves open who owes what it asks
for. So the subject of each MUST and SHOULD is an actor that the roles of the requirement bind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from conformance.suite.registry.requirement import Requirement

ACTORS = {
    "operator": ("operator", "admission", "authorizer", "API server", "init container"),
    "gang-scheduler": ("scheduler", "gang scheduler", "API server", "control plane"),
}
"""By role: the programs that do what a requirement asks for. The API server serves the CRDs of an operator."""

MODAL = re.compile(r"\b(?:MUST|SHOULD)\b")
_CLAUSE = r"(?:^|, |: |\b(?:and|but|or|then) )"
_NEGATED = re.compile(rf"{_CLAUSE}(?:nothing|nobody|none|neither|no)\b[^,;:]*$", re.IGNORECASE)
_COORDINATED = re.compile(r"(?:,|\b(?:and|but|or)(?: then)?) $")


def problems(entry: Requirement) -> Iterator[str]:
    """Yield what is wrong with the subjects of a requirement's MUST and SHOULD, one sentence each."""
    for sentence in re.split(r"(?<=[.;]) ", entry.text):
        named = False
        for modal in MODAL.finditer(sentence):
            before = sentence[: modal.start()]
            if _NEGATED.search(before):
                yield f"the subject is negated: “{before}{modal[0]}” permits what it seems to forbid"
            elif _subject(entry.roles).search(before):
                named = True
            elif not (named and _COORDINATED.search(before)):
                yield f"the subject is no actor: “{before}{modal[0]}”"


def _subject(roles: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of text that ends with an actor as subject: at the beginning of a clause, and with at most a
    relative clause behind it."""
    names = "|".join(sorted({actor for role in roles for actor in ACTORS[role]}))
    actor = rf"(?:(?:the|an?|another) (?:{names})|admission)"
    relative = r"(?: that (?:(?!,| and (?:the|an?|each|every|its) ).)*)?"
    return re.compile(rf"{_CLAUSE}{actor}(?: and {actor})?{relative} $", re.IGNORECASE)
