"""Replacements for values that identify a cluster. Pure functions of the lists: a fleet that was started from its
capture has the same pseudonyms when it is captured again.

A UUID of several nodes, or of a label, is the same for all of them in the capture as well. Other identifiers belong to
one node, and are numbered there (`device_pools`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UUID_WITH_NUMBER = re.compile(rf"{UUID.pattern}(\.[0-9]+)?")
"""The value of `nvidia.com/gpu.clique`: a fabric, and a part of it."""
_ADDRESS = re.compile(
    r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?:/[0-9]+)?"  # IPv4
    r"|(?:[0-9a-fA-F]{2}[:-]){5,}[0-9a-fA-F]{2}"  # MAC
    r"|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){3,}(?:/[0-9]+)?"  # IPv6, and GUIDs with colons
    r"|(?:0x)?[0-9a-fA-F]{12,}"  # GUIDs, WWNs and serial numbers
)
_IDENTIFYING_NAME = re.compile(r"serial|guid|wwn|mac(address)?$|ipv?[46]|address|hostname", re.IGNORECASE)


def natural_key(text: str) -> tuple[str | int, ...]:
    """Return a key that sorts numbers in texts as numbers."""
    return tuple(int(part) if index % 2 else part for index, part in enumerate(re.split(r"([0-9]+)", text)))


class Pseudonyms:
    """The replacements for a whole cluster: values of labels by key, and UUIDs of several nodes. `node_names` are names
    that no value may contain."""

    def __init__(
        self,
        values_by_key: Mapping[str, Collection[str]],
        shared_uuids: Iterable[str],
        node_names: Iterable[str],
    ) -> None:
        hosts = {host for name in node_names for host in (name, name.partition(".")[0])}
        self._hosts = {host for host in hosts if not host.isdecimal()}  # a node can have the name 10.0.0.1
        self._uuids = {
            original: f"00000000-0000-4000-8000-{index:012}"
            for index, original in enumerate(sorted(set(shared_uuids), key=natural_key))
        }
        self._own_uuids = set(self._uuids.values())
        self._values = {
            key: {value: f"{_word(key)}-{index}" for index, value in enumerate(sorted(set(values), key=natural_key))}
            for key, values in values_by_key.items()
        }

    def value(self, key: str, value: str) -> str:
        """Return the replacement for the value of a label or a taint. An empty value stays empty."""
        if _UUID_WITH_NUMBER.fullmatch(value):
            return self.without_shared_uuids(value)
        return self._values[key][value] if value else ""

    def without_shared_uuids(self, text: str) -> str:
        """Return a text with replacements for the UUIDs of several nodes."""
        return UUID.sub(lambda match: self._uuids.get(match[0], match[0]), text)

    def is_replacement(self, uuid: str) -> bool:
        """Return whether a UUID has come from here."""
        return uuid in self._own_uuids

    def names_node(self, text: str) -> bool:
        """Return whether a text contains the name of a node, as a word or with dots in it."""
        return not self._hosts.isdisjoint((*re.split(r"[^A-Za-z0-9.-]+", text), *re.split(r"[^A-Za-z0-9-]+", text)))


class NodeIdentifiers:
    """The numbers for the identifiers of one node."""

    def __init__(self, cluster: Pseudonyms) -> None:
        self._cluster = cluster
        self._numbers: dict[str, int] = {}
        self.replaced_attributes: set[str] = set()
        """The attributes, other than UUIDs, whose values were replaced."""

    def without_identity(self, attribute: str, text: str) -> str:
        """Return the value of an attribute with a number for each identifier that it contains."""
        if _IDENTIFYING_NAME.search(attribute) or _ADDRESS.fullmatch(text) or self._cluster.names_node(text):
            self.replaced_attributes.add(attribute)
            return self._number(text)
        shared = self._cluster.without_shared_uuids(text)
        return UUID.sub(lambda m: m[0] if self._cluster.is_replacement(m[0]) else self._number(m[0]), shared)

    def _number(self, identifier: str) -> str:
        return f"<id-{self._numbers.setdefault(identifier, len(self._numbers))}>"


def shared_uuids(texts_by_node: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the UUIDs that occur on several nodes."""
    nodes_by_uuid: dict[str, set[str]] = defaultdict(set)
    for node, texts in texts_by_node.items():
        for text in texts:
            for match in UUID.finditer(text):
                nodes_by_uuid[match[0]].add(node)
    return {uuid for uuid, nodes in nodes_by_uuid.items() if len(nodes) > 1}


def _word(key: str) -> str:
    """Return the last word of a key, as `rack` of `kubernetes.io/rack`. Values of labels may be 63 characters long."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", key.rpartition("/")[2])[:50].strip("-.") or "value"
