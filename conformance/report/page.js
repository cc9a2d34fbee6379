"use strict";
// Search and filter. Their state is in the address (#outcome=failed&profile=gang), so that a view can be passed on;
// #GANG-007 opens a requirement. Without this script everything is shown.
const form = document.getElementById("filter");
const rows = [...document.querySelectorAll("details.row")].map((row) => ({ row, text: row.textContent.toLowerCase() }));
const names = ["text", "outcome", "profile", "cause"];
const field = (name) => form.elements.namedItem(name);

function filter() {
  const wanted = Object.fromEntries(names.map((name) => [name, field(name)?.value.trim() ?? ""]));
  const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { row, text } of rows) {
    const fits = words.every((word) => text.includes(word))
      && (!wanted.outcome || row.dataset.outcome === wanted.outcome)
      && (!wanted.profile || row.dataset.profile === wanted.profile)
      && (!wanted.cause || row.dataset.cause.split(" ").includes(wanted.cause));
    row.hidden = !fits;
    count += fits;
  }
  for (const group of document.querySelectorAll(".group")) {
    group.hidden = !group.querySelector("details.row:not([hidden])");
  }
  document.getElementById("found").textContent = `${count} of ${rows.length} requirements`;
  return new URLSearchParams(names.filter((name) => wanted[name]).map((name) => [name, wanted[name]]));
}

function follow() {
  const hash = decodeURIComponent(location.hash.slice(1));
  const named = hash && document.getElementById(hash);
  if (hash && !named && !hash.includes("=")) return;
  const wanted = named ? new URLSearchParams() : new URLSearchParams(location.hash.slice(1));
  if (!named || named.matches("details.row")) {
    for (const name of names) if (field(name)) field(name).value = wanted.get(name) ?? "";
    filter();
  }
  if (named?.matches("details.row")) {
    named.open = true;
    go(named);
  } else if (!named && wanted.size) {
    document.getElementById("requirements").scrollIntoView();
  }
}

function go(row) {
  row.scrollIntoView({ block: "nearest" });
  row.querySelector("summary").focus();
}

function apply() {
  const wanted = filter();
  history.replaceState(null, "", wanted.size ? `#${wanted}` : location.pathname);
}

function showAll() {
  for (const name of names) if (field(name)) field(name).value = "";
  apply();
}

form.addEventListener("input", apply);
form.addEventListener("submit", (event) => event.preventDefault());
form.querySelector("button").addEventListener("click", showAll);
addEventListener("hashchange", follow);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return showAll();
  if (event.target.matches("input, select")) return;
  if (event.key === "/") {
    event.preventDefault();
    field("text").focus();
  } else if (event.key === "j" || event.key === "k") {
    const shown = rows.map(({ row }) => row).filter((row) => !row.hidden);
    const at = shown.indexOf(document.activeElement.closest("details.row"));
    const next = event.key === "j" ? at + 1 : Math.max(at - 1, 0);
    if (shown[next]) go(shown[next]);
  }
});
for (const part of [form, document.querySelector(".keys")]) part.hidden = false;
filter();
if (location.hash) {
  follow();
  addEventListener("load", () => setTimeout(follow)); // the browser itself goes to the fragment, without any focus
}
