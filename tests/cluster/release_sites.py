"""A loopback server that replaces all release sites: it serves files, and images as a registry does."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

SITES = ("KUBERNETES", "REGISTRY", "KWOK", "ETCD")
OCI_MEDIA_TYPE = "application/vnd.oci.image"


class ReleaseSite:
    """A server of `files` (path → bytes) with `redirects` (path → URL). Paths that start with `protected_prefix` need
    the token that `/token` issues. Each of the `faults` ("503", "cut" or "") applies to one response, in order."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.media_types: dict[str, str] = {}
        """The media types (path → type) of files that are served only to clients that accept the type."""
        self.redirects: dict[str, str] = {}
        self.protected_prefix = ""
        self.requests: list[str] = []
        self.authorizations: list[str] = []
        self.faults: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append(self.path)
                site.authorizations.append(self.headers.get("Authorization", ""))
                if self.path in site.redirects:
                    self.respond(307, Location=site.redirects[self.path])
                elif self.path.startswith("/token?"):
                    self.respond(200, json.dumps({"token": "anonymous"}).encode())
                elif (
                    site.protected_prefix
                    and self.path.startswith(site.protected_prefix)
                    and not site.authorizations[-1]
                ):
                    challenge = f'Bearer realm="{site.url}/token",service="a registry",scope="pull"'
                    self.respond(401, **{"WWW-Authenticate": challenge})
                else:
                    self.serve()

            def serve(self) -> None:
                body = site.files.get(self.path)
                media_type = site.media_types.get(self.path, "")
                if body is None or media_type not in self.headers.get("Accept", ""):
                    self.respond(404)
                    return
                fault = site.faults.pop(0) if site.faults else ""
                self.respond(503 if fault == "503" else 200, body, extra_bytes=fault == "cut")

            def respond(self, code: int, body: bytes = b"", *, extra_bytes: bool = False, **headers: str) -> None:
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body) + extra_bytes))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET  # noqa: N815 - the name is the library's

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler

    def add_image(self, name: str, layers: list[bytes], platforms: tuple[str, ...] = ("linux-amd64",)) -> str:
        """Serve an image with the same content for each platform, and return the digest of its index."""
        descriptors = [self._blob(name, layer) for layer in layers]
        manifest = json.dumps({"config": {"digest": "none"}, "layers": descriptors}).encode()
        entries = []
        for platform in platforms:
            os, architecture = platform.split("-")
            digest = self._manifest(name, manifest, f"{OCI_MEDIA_TYPE}.manifest.v1+json")
            entries.append({"digest": digest, "platform": {"os": os, "architecture": architecture}})
        unknown_platform = {"digest": "sha256:0", "platform": {"os": "unknown", "architecture": "unknown"}}
        return self._manifest(
            name, json.dumps({"manifests": [unknown_platform, *entries]}).encode(), f"{OCI_MEDIA_TYPE}.index.v1+json"
        )

    def _blob(self, name: str, content: bytes) -> Mapping[str, object]:
        self.files[f"/v2/{name}/blobs/{sha256(content)}"] = content
        return {"digest": sha256(content), "size": len(content)}

    def _manifest(self, name: str, content: bytes, media_type: str) -> str:
        path = f"/v2/{name}/manifests/{sha256(content)}"
        self.files[path], self.media_types[path] = content, media_type
        return sha256(content)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@contextmanager
def serve_release_site() -> Iterator[ReleaseSite]:
    """Yield a release site, and stop it at the end of the block."""
    site = ReleaseSite()
    try:
        yield site
    finally:
        site.close()


def use_site(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the server at `url` as every release site."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in SITES:
        monkeypatch.setenv(f"GROVE_CONFORMANCE_RELEASES_{name}", url)


def sha256(content: bytes) -> str:
    """Return the digest of the content in the format of pins and registries."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def archive(members: Mapping[str, bytes]) -> bytes:
    """Return a tar archive in gzip format, without compression."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(output.getvalue(), compresslevel=0)
