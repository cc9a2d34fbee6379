"""Measures the reference's hashing of 1,000 different cliques with a realistic inference pod spec, each hashed once.

    .venv/bin/python tests/bench/hashing.py

The benchmark prints CPU time. The exit code is 1 if a template takes more than MAX_TEMPLATE_MS in a warm process, or
1,000 cliques take more than MAX_SECONDS in a fresh process.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from typing import Any

from reference_impl.plan.hashing import schemes
from reference_impl.plan.hashing.schemes import CANONICAL, Template
from reference_impl.plan.hashing.window import Policy, compute_template_hashes
from tests.reference import hash_vectors

CLIQUES = 1000
MAX_SECONDS, MAX_TEMPLATE_MS = 1.0, 1.0


def templates(round_: str) -> list[Template]:
    """Return CLIQUES templates that differ in an image, an environment variable and a label."""
    template: dict[str, Any] = next(v for v in hash_vectors.vectors() if v["name"] == "vllm-server")["template"]
    result = []
    for number in range(CLIQUES):
        clique = copy.deepcopy(template["cliques"][0])
        spec = clique["spec"]["podSpec"]
        spec["containers"][0]["image"] += f"-{round_}{number}"
        spec["containers"][0]["env"].append({"name": "NUMBER", "value": str(number)})
        clique["labels"]["number"] = f"{round_}{number}"
        result.append(Template.of(f"c{number}", clique["labels"], None, spec, template.get("priorityClassName")))
    return result


def measure(text: str, action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    seconds = time.process_time() - start
    print(f"{text:52} {seconds:7.3f} s  {seconds / CLIQUES * 1000:6.3f} ms each")
    return seconds


def _unknown(template: Template) -> bool:
    return "unknown" in compute_template_hashes(template, Policy())


def main() -> int:
    first, second, third = templates("a"), templates("b"), templates("c")

    def hash_all(batch: list[Template]) -> Callable[[], object]:
        return lambda: [schemes.template_hash(template, CANONICAL) for template in batch]

    cold = measure("1,000 cliques, fresh process", hash_all(first))
    warm = measure("1,000 others", hash_all(second))
    measure("the same again, remembered", hash_all(second))
    measure("generation hash of 1,000 cliques", lambda: schemes.generation_hash(second, CANONICAL, in_order=True))
    measure("window of 1,000 cliques, one stored hash unknown", lambda: [_unknown(t) for t in third])
    return int(cold > MAX_SECONDS or warm / CLIQUES * 1000 > MAX_TEMPLATE_MS)


if __name__ == "__main__":
    sys.exit(main())
