"""Policies that a cluster enforces: built-in policies, which are selected by name (`fixtures/policies/`), and files or
folders of manifests.

An AdmissionConfiguration is passed to the API server. Other objects are created once, except that objects of namespaced
kinds that do not set a namespace are created in each namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import bounded, documents
from conformance.data import folder
from conformance.errors import UsageError
from conformance.suggestions import explain_missing, suggestion

OPTION = "--policy"
RBAC = "rbac"
"""The policy without manifests: the user of a role may do only what the role's descriptor declares."""
SUFFIXES = (".yaml", ".yml", ".json")
_CONFIGURATION_KIND = "AdmissionConfiguration"
_HOOK_SUFFIXES = ("WebhookConfiguration", "AdmissionPolicy")

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Policies:
    """The policies of a cluster. `words` are names and absolute paths, `plugins` are entries of an
    AdmissionConfiguration, and `objects` are the other manifests, each with its file."""

    words: tuple[str, ...] = ()
    plugins: tuple[Manifest, ...] = ()
    objects: tuple[tuple[Path, Manifest], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words)

    @property
    def configuration(self) -> Manifest | None:
        """Return the configuration of admission plugins; None if no policy has one."""
        header = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": _CONFIGURATION_KIND}
        return {**header, "plugins": list(self.plugins)} if self.plugins else None

    @property
    def objects_without_namespace(self) -> list[Manifest]:
        """Return the objects that belong in each namespace, if their kind is namespaced."""
        return [manifest for _, manifest in self.objects if not manifest["metadata"].get("namespace")]

    @property
    def hook_names(self) -> frozenset[str]:
        """Return the names of webhooks and admission policies, which appear in the API server's rejections."""
        admission_manifests = (manifest for _, manifest in self.objects if manifest["kind"].endswith(_HOOK_SUFFIXES))
        hooks = (
            hook for manifest in admission_manifests for hook in manifest.get("webhooks") or [manifest["metadata"]]
        )
        return frozenset(str(hook["name"]) for hook in hooks)


NO_POLICIES = Policies()


def names() -> list[str]:
    """Return the names of the built-in policies."""
    return sorted([RBAC, *(path.stem for path in (folder("fixtures") / "policies").glob("*.yaml"))])


def select(options: Iterable[str]) -> tuple[str, ...]:
    """Return the names and absolute paths that options such as `restricted,quota` and `./mine.yaml` select. Raises
    UsageError for an unknown name."""
    words = [word.strip() for option in options for word in ([option] if Path(option).exists() else option.split(","))]
    return tuple(dict.fromkeys(word if word in names() else str(_path(word)) for word in words))


def load(words: Iterable[str]) -> Policies:
    """Read the policies that `select` has returned. If a file is invalid, raises UsageError with its path."""
    selected = tuple(words)
    plugins: dict[str, Manifest] = {}
    objects: list[tuple[Path, Manifest]] = []
    for path in (path for word in selected for path in _files(word)):
        for manifest in read(path):
            if manifest["kind"] != _CONFIGURATION_KIND:
                objects.append((path, manifest))
                continue
            for plugin in manifest.get("plugins") or ():
                if (name := str(plugin.get("name"))) in plugins:
                    problem = f"configures the admission plugin {name}, as another policy does"
                    raise UsageError(problem, where=documents.display_path(path), hint="leave one of them out")
                plugins[name] = plugin
    return Policies(selected, tuple(plugins.values()), tuple(objects))


def read(path: Path) -> list[Manifest]:
    """Return the manifests of one file. Raises UsageError if the file is invalid."""
    location = documents.display_path(path)
    manifests = documents.parse_all(path, bounded.text(path, bounded.MAX_MANIFEST_BYTES, location))
    for manifest in manifests:
        if not (isinstance(manifest, dict) and isinstance(manifest.get("kind"), str) and manifest.get("apiVersion")):
            raise UsageError("holds something else than a manifest", where=location, hint="give kind and apiVersion")
        metadata = manifest.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if manifest["kind"] != _CONFIGURATION_KIND and not (isinstance(name, str) and name):
            raise UsageError(f"holds a {manifest['kind']} without a name", where=location, hint="give metadata.name")
    if not manifests:
        raise UsageError("holds no manifest", where=location, hint="give at least one")
    return manifests


def _path(word: str) -> Path:
    if not (path := Path(word).expanduser()).exists():
        if "/" in word or path.suffix in SUFFIXES:
            problem, hint = explain_missing(path)
            raise UsageError(problem, where=f"{OPTION} {word}", hint=hint or "give a file or folder of manifests")
        hint = f"{suggestion(word, names())} or give a file or folder of manifests"
        raise UsageError(f"unknown policy {word!r}", where=OPTION, hint=hint)
    return path.absolute()


def _files(word: str) -> Iterator[Path]:
    """Yield the files of one policy in their order. Raises UsageError for a folder without manifests."""
    if word == RBAC:
        return
    path = folder("fixtures") / "policies" / f"{word}.yaml" if word in names() else Path(word)
    if not path.is_dir():
        yield path
        return
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    if not files:
        raise UsageError("has no manifests", where=f"{OPTION} {documents.display_path(path)}", hint="add *.yaml files")
    yield from files
