"""`make lint`: checks that each requirement names the actor that has to meet it.

"Nothing MUST be deleted" permits deletion (RFC 2119), and a sentence about an object does not say who has to act.
Therefore, the subject of each MUST and SHOULD has to be an actor that the requirement's roles bind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from conformance.suite.registry.requirement import Requirement

ACTORS = {
    "operator": ("operator", "admission", "authorizer", "API server", "init container"),
    "gang-scheduler": ("scheduler", "gang scheduler", "API server", "control plane"),
}
"""The actors that each role binds. The API server is an actor for the operator role because it serves the operator's
CRDs."""

MODAL = re.compile(r"\b(?:MUST|SHOULD)\b")
_CLAUSE = r"(?:^|, |: |\b(?:and|but|or|then) )"
_NEGATED = re.compile(rf"{_CLAUSE}(?:nothing|nobody|none|neither|no)\b[^,;:]*$", re.IGNORECASE)
_COORDINATED = re.compile(r"(?:,|\b(?:and|but|or)(?: then)?) $")


def find_problems(entry: Requirement) -> Iterator[str]:
    """Yield a message for each MUST or SHOULD of a requirement that has a wrong subject."""
    for sentence in re.split(r"(?<=[.;]) ", entry.text):
        has_actor = False
        for modal in MODAL.finditer(sentence):
            text_before = sentence[: modal.start()]
            if _NEGATED.search(text_before):
                yield f"the subject is negated: “{text_before}{modal[0]}” permits what it seems to forbid"
            elif _subject(entry.roles).search(text_before):
                has_actor = True
            elif not (has_actor and _COORDINATED.search(text_before)):
                yield f"the subject is no actor: “{text_before}{modal[0]}”"


def _subject(roles: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for text that ends with an actor as its subject: the actor starts a clause, and only a relative
    clause may follow the actor."""
    names = "|".join(sorted({actor for role in roles for actor in ACTORS[role]}))
    actor = rf"(?:(?:the|an?|another) (?:{names})|admission)"
    relative_clause = r"(?: that (?:(?!,| and (?:the|an?|each|every|its) ).)*)?"
    return re.compile(rf"{_CLAUSE}{actor}(?: and {actor})?{relative_clause} $", re.IGNORECASE)
