"""Git refs as sides: a work tree for each commit, built once per commit and command.

    <folder>/<commit>/             the work tree, detached at the commit
    <folder>/<commit>.complete     written when the work tree is complete
    <folder>/<commit>.<key>.built  written when the build command `key` has succeeded there
    <folder>/<commit>.<key>.log    the output of the build command

The command comes from the user and runs in the work tree. The repository itself is not changed, except that git records
the work trees in it.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from conformance import disk, documents
from conformance.cluster import locks
from conformance.cluster.progress import ProgressReporter
from conformance.errors import UsageError

PLACEHOLDER = "${worktree}"
"""A placeholder for the folder of the work tree in the values of parameters."""


@dataclass(frozen=True)
class Repository:
    """A repository, and the folder of its work trees. `build` is a shell command; empty if nothing is to be built."""

    path: Path
    folder: Path
    build: str

    def commit(self, ref: str) -> str:
        """Return the commit of a ref. Raises UsageError if there is none."""
        result = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if result.returncode:
            is_repository = self._git("rev-parse", "--git-dir").returncode == 0
            problem, hint = (f'unknown ref "{ref}"', "give a branch, a tag or a commit")
            if not is_repository:
                problem, hint = "is not a git repository", "give the folder of one"
            raise UsageError(problem, where=f"--repo {self.path}", hint=hint)
        return result.stdout.strip()

    def build_commit(self, commit: str, report: ProgressReporter) -> Path:
        """Return a work tree in which a commit is built. Raises UsageError if git or the build command fails."""
        disk.make_folder(self.folder, location=str(self.folder), hint="give another --dir")
        tree = (self.folder / commit).absolute()
        key = hashlib.sha256(self.build.encode()).hexdigest()[:12]
        built_marker = self.folder / f"{commit}.{key}.built"
        with locks.hold(self.folder / f"{commit}.lock", report, timeout=locks.BUILD_WAIT_SECONDS):
            if not self._complete_marker(tree).exists():
                self._add_work_tree(tree, commit)
            if self.build and not built_marker.exists():
                report("build", f"{commit[:12]}: {self.build}")
                self._run_build(tree, self.folder / f"{commit}.{key}.log")
            built_marker.touch()
        return tree

    def _add_work_tree(self, tree: Path, commit: str) -> None:
        shutil.rmtree(tree, ignore_errors=True)  # its creation may have been interrupted
        self._git("worktree", "prune")
        result = self._git("worktree", "add", "--detach", str(tree), commit)
        if result.returncode:
            lines = result.stderr.strip().splitlines() or ["git failed"]
            raise UsageError(lines[-1], where=f"--repo {self.path}", hint="is the repository writable?")
        self._complete_marker(tree).touch()

    def _complete_marker(self, tree: Path) -> Path:
        return tree.with_name(f"{tree.name}.complete")

    def _run_build(self, tree: Path, log: Path) -> None:
        with log.open("wb") as output:
            code = subprocess.run(
                ["/bin/sh", "-c", self.build], cwd=tree, stdout=output, stderr=subprocess.STDOUT, check=False
            ).returncode
        if code:
            lines = log.read_text(errors="replace").strip().splitlines()
            last_line = lines[-1] if lines else "no output"
            raise UsageError(
                f"exit code {code}: {last_line}", where="--build", hint=f"see {documents.display_path(log)}"
            )

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)


def fill_settings(settings: dict[str, str], tree: Path) -> dict[str, str]:
    """Return the values of parameters with the folder of the work tree filled in."""
    return {name: value.replace(PLACEHOLDER, str(tree)) for name, value in settings.items()}
