"""Variables of the suite's environment that an implementation's programs inherit: variables for finding files, for
reaching the network, and for the language.

All other variables may be secrets of this machine or of its CI system. A descriptor names the additional variables that
its programs need (`inherit`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_HARMLESS = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "TZ", "LANG", "LANGUAGE"}
    | {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"}
)
_PREFIXES = ("LC_", "PYTHON")
NEVER_INHERITED = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAMESPACE")
"""Variables that would direct a client to another cluster. They are never inherited."""


def inherited_variables(environment: Mapping[str, str], declared_names: Collection[str]) -> dict[str, str]:
    """Return the variables that a program inherits. `declared_names` are the variables that its descriptor names."""
    return {
        name: value
        for name, value in environment.items()
        if name not in NEVER_INHERITED and (name in _HARMLESS or name in declared_names or name.startswith(_PREFIXES))
    }


def missing_variables_note(environment: Mapping[str, str], passed_names: Collection[str], output: str) -> str:
    """Return a note about variables that were not given to a program and that its output mentions; an empty string if
    there are none."""
    words = set(re.findall(r"\w+", output))
    names = sorted(
        name for name in words & environment.keys() - set(passed_names) - set(NEVER_INHERITED) if name.isupper()
    )
    if not names:
        return ""
    return f"; not inherited: {', '.join(names)} (name it in `inherit` of the process, or set it in `env`)"
