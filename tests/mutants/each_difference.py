"""For each difference of the Workload API back-end, runs the tests that it names with the difference applied.

`python -m tests.mutants.each_difference` prints a JSON object of name → outcome. The outcome is PASSED, FAILED if an
assertion of a test has failed, or ERROR with a traceback on stderr.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import json
import os
import sys
import traceback

from mutants.registry import MUTANTS, VARIANTS
from mutants.workload_api import PERMITTED, WRONG, Difference

PASSED, FAILED, ERROR = 0, 1, 2


def run_test(test_id: str) -> None:
    """Run one test: `module:function`, or `module:function#n` for row n of its parameters."""
    module, _, rest = test_id.partition(":")
    name, _, row = rest.partition("#")
    folder = "tests.reference" if module == "test_features" else "tests.reference.workload_api"
    test = getattr(importlib.import_module(f"{folder}.{module}"), name)
    arguments = ()
    if row:
        _, rows = next(mark.args for mark in test.pytestmark if mark.name == "parametrize")
        arguments = rows[int(row)]
        takes_several = isinstance(arguments, tuple) and len(inspect.signature(test).parameters) > 1
        arguments = arguments if takes_several else (arguments,)
    outcome = test(*arguments)
    if inspect.iscoroutine(outcome):
        asyncio.run(outcome)


def outcome(difference: Difference) -> int:
    """Apply a difference and run its tests. Return FAILED or ERROR at the first test that does not pass, otherwise
    PASSED."""
    difference.apply()
    try:
        for test_id in difference.caught_by:
            run_test(test_id)
    except AssertionError:
        return FAILED
    except BaseException:  # pytest's outcomes derive from BaseException; nothing may escape from the child process
        traceback.print_exc()
        return ERROR
    return PASSED


def main() -> None:
    MUTANTS.all(), VARIANTS.all()  # loading a module registers its entries
    outcomes: dict[str, int] = {}
    every = {**WRONG.all, **PERMITTED.all}
    test_ids = [test_id for difference in every.values() for test_id in difference.caught_by]
    for module in {test_id.partition(":")[0] for test_id in test_ids} - {"test_features"}:
        importlib.import_module(f"tests.reference.workload_api.{module}")
    gc.freeze()
    for name, difference in every.items():
        if not (child := os.fork()):  # in a child process, because a difference cannot be undone
            os._exit(outcome(difference))
        outcomes[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main()
