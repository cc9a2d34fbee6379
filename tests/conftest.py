"""For all tests: generated examples are the same in every run, so that only a change can turn CI red.

`HYPOTHESIS_PROFILE=search pytest …` looks for new ones.
"""

import os
import signal

from hypothesis import settings

settings.register_profile("same", derandomize=True)
settings.register_profile("search", derandomize=False)
settings.register_profile("thorough", max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A shell that starts something in the background has it ignore Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
