"""`python -m tests.findings.run --set binary=… --set crds=… PAGE…`: run the recipes of findings on a fake cluster.

Each recipe runs unchanged in its own namespace. Recipes that change nodes or cluster-scoped objects run alone. A recipe
whose outputs match its page is recorded in fixtures/findings/recipes.yaml.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import yaml

from conformance.cluster.controlplane import find
from tests.findings.recipe import RECORD_FILE, Recipe, matches, read_recipes, recorded_digests

CLUSTER_NAME = "findings"
CLUSTER_OPTIONS = ("--nodes", "dgx-h100:4", "--scheduler-name", "kube-scheduler")
EXCLUSIVE_COMMAND = re.compile(
    r"(?i)cordon|label node|validatingadmissionpolicy|webhookconfiguration|clustertopology|kill -"
)
MAX_SECONDS = 420
END_MARK = "@@ end of a command"


def call_cluster_command(*arguments: str) -> None:
    """Call `grove-conformance cluster`."""
    program = Path(sys.executable).with_name("grove-conformance")
    subprocess.run([program, "cluster", *arguments], stdout=subprocess.DEVNULL, check=True)


def run_recipe(recipe: Recipe, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run a recipe in its own namespace, and yield each output that differs from the page."""
    slug = f"{recipe.finding.ids[0].lower()}-{os.getpid()}"
    recipe_folder = folder / slug
    recipe_folder.mkdir()
    variables = environment | {"KUBECONFIG": shutil.copy(environment["KUBECONFIG"], recipe_folder / "kubeconfig")}
    commands = (*recipe.preparation, *recipe.commands)
    lines = ["exec 2>&1", f"kubectl create namespace {slug} || exit"]
    lines += [f"kubectl config set-context --current --namespace {slug}"]
    lines += [f"echo '{END_MARK}'\n{command.text}" for command in commands]
    with (recipe_folder / "output").open("w+") as output:
        try:
            script = "\n".join([*lines, f"echo '{END_MARK}'"])
            subprocess.run(["bash", "-c", script], cwd=recipe_folder, env=variables, stdout=output, timeout=MAX_SECONDS)
        except subprocess.TimeoutExpired:
            yield f"not done within {MAX_SECONDS} s"
        output.seek(0)
        _, *parts = output.read().split(f"{END_MARK}\n")
    for command, actual_output in zip(commands, parts, strict=False):
        if command.output and not matches(command.output, actual_output):
            yield "\n".join([f"$ {command.text}", "page:", *command.output, "seen:", actual_output])
    for cleanup in ("annotate pods --all conformance.grove.io/hold-deletion-", f"delete namespace {slug} --wait=false"):
        subprocess.run(["kubectl", *cleanup.split()], env=variables, stdout=subprocess.DEVNULL)


def main() -> int:
    """Run the chosen recipes, record those that match their pages, and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--cluster", default="", help="a cluster with the operator that exists; else one is made")
    parser.add_argument("--implementation", default="grove-operator")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--id", action="append", default=[], help="run only the recipes of these requirements")
    parser.add_argument("--stale", action="store_true", help="run only what has changed since it was run")
    parser.add_argument("--parallel", type=int, default=4)
    options = parser.parse_args()
    selected_recipes = [recipe for page in options.pages for recipe in read_recipes(page) if recipe.commands]
    if options.id:
        selected_recipes = [recipe for recipe in selected_recipes if set(options.id) & set(recipe.finding.ids)]
    if options.stale:
        selected_recipes = [
            recipe for recipe in selected_recipes if recorded_digests().get(recipe.name) != recipe.digest
        ]
    if options.cluster:
        return min(1, sum(_run_recipes(selected_recipes, options.cluster, options.parallel)))
    settings = [word for setting in options.settings for word in ("--set", setting)]
    call_cluster_command(
        "up",
        CLUSTER_NAME,
        "--owner",
        str(os.getpid()),
        *CLUSTER_OPTIONS,
        "--implementation",
        options.implementation,
        *settings,
    )
    try:
        return min(1, sum(_run_recipes(selected_recipes, CLUSTER_NAME, options.parallel)))
    finally:
        call_cluster_command("down", CLUSTER_NAME)


def _run_recipes(selected_recipes: list[Recipe], name: str, max_workers: int) -> Iterator[bool]:
    """Run the recipes, starting with those that can share the cluster, and yield whether each recipe failed."""
    cluster = find(name)
    path = f"{cluster.kubectl.parent}:{os.environ['PATH']}"
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "PATH": path}
    folder = Path(tempfile.mkdtemp(prefix="recipes-"))
    sys.stdout.write(f"outputs: {folder}\n")
    exclusive_recipes = [
        recipe
        for recipe in selected_recipes
        if any(EXCLUSIVE_COMMAND.search(command.text) for command in recipe.commands)
    ]
    for group, workers in (
        ([recipe for recipe in selected_recipes if recipe not in exclusive_recipes], max_workers),
        (exclusive_recipes, 1),
    ):
        with ThreadPoolExecutor(workers) as pool:
            results = pool.map(lambda recipe: list(run_recipe(recipe, folder, environment)), group)
            for recipe, differences in zip(group, results, strict=True):
                lines = [f"{'FAILED' if differences else 'as shown'}: {recipe.name}", *differences]
                sys.stdout.write("\n".join(lines) + "\n")
                sys.stdout.flush()
                if not differences:
                    record_recipe(recipe)
                yield bool(differences)


def record_recipe(recipe: Recipe) -> None:
    """Record that the outputs of a recipe matched its page."""
    digests = recorded_digests() | {recipe.name: recipe.digest}
    content = {
        "apiVersion": "conformance.grove.io/v1alpha1",
        "kind": "RecipesRun",
        "date": datetime.now(UTC).date().isoformat(),
        "recipes": dict(sorted(digests.items())),
    }
    RECORD_FILE.write_text(yaml.safe_dump(content, sort_keys=False, width=116), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
