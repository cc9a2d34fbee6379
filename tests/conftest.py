"""For all tests: generated examples are the same in every run, so that only a change can turn CI red.

`HYPOTHESIS_PROFILE=search pytest …` looks for new ones.
"""

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True)
settings.register_profile("search", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
