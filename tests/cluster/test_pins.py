"""Tests of the pins file: the file of this project, a user's own file, sites and mirrors."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from conformance.cluster import assets, pins
from conformance.cluster.pins import PINS, Program
from conformance.errors import UsageError

PLATFORMS = ("linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64")


def program(name: str, platform: str = "linux-arm64", kubernetes: str = "") -> Program:
    return next(program for program in pins.load(platform, kubernetes) if program.name == name)


def test_programs_are_pinned_as_images_files_or_archives() -> None:
    assert program("kube-scheduler").url.startswith("https://registry.k8s.io/v2/kube-scheduler/manifests/sha256:")
    assert program("kubectl").url == "https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kubectl"
    assert program("etcd").url.endswith("/v3.6.14/etcd-v3.6.14-linux-arm64.tar.gz")
    assert program("etcd").member == "etcd-v3.6.14-linux-arm64/etcd"


def test_on_macos_kubernetes_is_built() -> None:
    assert not program("kube-apiserver", "darwin-arm64").digest and program("kwok", "darwin-arm64").digest


@pytest.mark.parametrize("version", ["1.37", "1.37.2", "v1.37.2"])
def test_a_cluster_of_another_version_has_its_own_control_plane_and_the_default_kubectl(version: str) -> None:
    names = {pin.name for pin in pins.load("linux-amd64")}
    selected_pins = pins.load("linux-amd64", version)
    assert {pin.name for pin in selected_pins} == names and len(selected_pins) == len(names)
    assert program("kube-apiserver", kubernetes=version).group.version == "1.37.2"
    assert program("kubectl", kubernetes=version).group.version == program("kubectl").group.version == "1.36.3"


@pytest.mark.parametrize("version", ["", "1.36", "1.36.3", "v1.36"])
def test_the_default_version_has_digests_for_all_programs(version: str) -> None:
    assert pins.load("linux-amd64", version) == pins.load("linux-amd64")
    assert pins.release("linux-amd64", version).version == "1.36.3"
    assert all(pin.digest for pin in pins.load("linux-amd64", version))


def test_each_version_of_kubernetes_is_built_from_its_own_sources() -> None:
    releases = pins.releases("linux-amd64")
    assert [group.version for group in releases] == ["1.36.3", "1.37.2"]
    for group in releases:
        assert f"k8s.io/kubernetes v{group.version}" in (group.module / "go.mod").read_text()
        assert f"k8s.io/kubernetes v{group.version} h1:" in (group.module / "go.sum").read_text()
        assert f"gitVersion=v{group.version}" in group.ldflags
        assert f"gitMinor={group.minor.partition('.')[2]} " in group.ldflags


@pytest.mark.parametrize("version", ["1.35", "1.36.2", "1.37.2-rc.0", "latest", "1.3", "1"])
def test_an_unpinned_version_is_reported_with_the_pinned_versions(version: str) -> None:
    with pytest.raises(UsageError) as caught:
        pins.load("linux-amd64", version)
    message = f"--kubernetes: Kubernetes '{version}' is not pinned — pinned: 1.36.3 (default), 1.37.2"
    assert str(caught.value) == message


def test_a_mirror_of_images_may_have_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROVE_CONFORMANCE_RELEASES_REGISTRY", "http://127.0.0.1:5000/some/mirror/")
    url = program("kube-apiserver").url
    assert url.startswith("http://127.0.0.1:5000/v2/some/mirror/kube-apiserver/manifests/sha256:")
    assert program("kube-apiserver").site.root == "http://127.0.0.1:5000"
    assert program("kubectl").url.startswith("https://dl.k8s.io/")


def test_programs_of_a_disabled_site_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROVE_CONFORMANCE_RELEASES_REGISTRY", "none")
    assert not program("kube-apiserver").digest and program("kubectl").digest


@pytest.mark.parametrize("site", ["mirror.example.com", "file:///etc", "http://", "ftp://example.com"])
def test_a_mirror_without_an_http_address_is_a_usage_error(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROVE_CONFORMANCE_RELEASES_KWOK", site)
    with pytest.raises(UsageError, match=r"GROVE_CONFORMANCE_RELEASES_KWOK: .* http:// or https:// URL, or none"):
        program("kwok")


def test_users_may_supply_their_own_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pins_file = tmp_path / "own.yaml"
    pins_file.write_text((PINS / "assets.yaml").read_text("utf-8").replace("1.36.3", "1.36.9"), "utf-8")
    monkeypatch.setenv("GROVE_CONFORMANCE_PINS", str(pins_file))
    assert program("kubectl").group.version == "1.36.9" and "v1.36.9" in program("kubectl").url


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("      kwokctl:", "      kwokctrl:", r"kwokctrl"),
        ("      kubectl:\n        file: ", "      kubectl:\n        fiel: ", r"kubectl"),
        (
            "linux-amd64: sha256:ebbd",
            "linux-amd64: ebbd",
            r"own.yaml:\d+: .*digests.linux-amd64: .* sha256:HEX or sha512:HEX",
        ),
        ("        site: registry\n", "        site: registri\n", "its site is not one of"),
        ("  registry: https:", "  registry: ftp:", r"own.yaml:\d+: sites.registry: .* an http:// or https:// URL"),
        ("    version: 1.37.2", "    version: 1.36.4", r"1\.36\.4 is not a version of kubernetes-1\.37"),
        ("  kubernetes-1.37:", "  kubernetes-next:", "kubernetes-next"),
        ("      kwokctl:", "      kubectl:", "groups.kwok.programs.kubectl: unknown field — known: kwok, kwokctl"),
        ("  etcd:\n    version: 3.6.14", "  etcd:\n    version: v3.6.14", "MAJOR.MINOR.PATCH"),
    ],
)
def test_a_mistake_in_a_pins_file_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    text = (PINS / "assets.yaml").read_text("utf-8")
    assert old in text
    pins_file = tmp_path / "own.yaml"
    pins_file.write_text(text.replace(old, new), "utf-8")
    monkeypatch.setenv("GROVE_CONFORMANCE_PINS", str(pins_file))
    with pytest.raises(UsageError, match=message) as caught:
        pins.load("linux-amd64")
    assert "own.yaml:" in str(caught.value) and "\n" not in str(caught.value)


def test_a_group_has_all_programs_of_its_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = yaml.safe_load((PINS / "assets.yaml").read_text("utf-8"))
    assert "kubectl" not in content["groups"]["kubernetes-1.37"]["programs"]
    del content["groups"]["kubernetes"]["programs"]["kubectl"]
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(content))
    monkeypatch.setenv("GROVE_CONFORMANCE_PINS", str(tmp_path / "own.yaml"))
    with pytest.raises(UsageError, match=r'groups\.kubernetes\.programs: the field "kubectl" is missing — add it'):
        pins.load("linux-amd64")


def test_the_cache_key_depends_on_the_pins_and_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [assets.cache_key(), assets.cache_key("1.37")]
    assert keys[0] == assets.cache_key() and keys[0] != keys[1]
    changed_pins = tmp_path / "assets.yaml"
    changed_pins.write_text(pins.source().read_text() + "# another pin\n")
    monkeypatch.setenv(pins.VARIABLE, str(changed_pins))
    assert assets.cache_key() != keys[0]
