// A row of a list opens beside it; its address has it. Everything here is extra: without it the rows
// lead to pages, and an address that has an open item is drawn with it.
"use strict";

// Where there is no room beside a list, a row leads to its page.
const NARROW = matchMedia("(max-width: 54rem)");
const panelOf = () => document.getElementById("panel");
const isOpen = () => Boolean(panelOf() && !panelOf().hidden);
let isFocusWanted = false;

function withOpen(name) {
  const address = new URL(window.location);
  if (name) address.searchParams.set("open", name);
  else address.searchParams.delete("open");
  return address.pathname + address.search;
}

// The list that is drawn: another one has to be asked for whole.
let listShown = withOpen("");

function mark() {
  const name = new URL(window.location).searchParams.get("open");
  document.querySelector("#live [data-row][aria-current]")?.removeAttribute("aria-current");
  const row = name && document.querySelector(`#live [data-row="${CSS.escape(name)}"]`);
  if (row) row.setAttribute("aria-current", "true");
}

function draw() {
  htmx.ajax("GET", window.location.pathname + window.location.search, {
    source: "#panel",
    target: "#panel",
    swap: "outerHTML",
  });
  mark();
}

function openItem(name) {
  // One entry for an open panel, however many items are gone through: back closes it.
  history[isOpen() ? "replaceState" : "pushState"]({ panel: true }, "", withOpen(name));
  isFocusWanted = true;
  draw();
}

function hide() {
  const { name } = panelOf().dataset;
  // What was asked for would open it again.
  htmx.trigger(panelOf(), "htmx:abort");
  panelOf().hidden = true;
  mark();
  const rows = [...document.querySelectorAll("#live [data-row]")];
  (rows.find((row) => row.dataset.row === name) ?? rows[0])?.focus();
}

function closePanel() {
  history.pushState({ panel: true }, "", withOpen(""));
  hide();
}

// What the list shows beside the open item; beyond its end the server knows.
function stepPanel(by) {
  if (!isOpen()) return false;
  const rows = [...document.querySelectorAll("#live [data-row]")].filter((row) => row.dataset.row);
  const at = rows.findIndex((row) => row.hasAttribute("aria-current"));
  const link = panelOf().querySelector(`[data-step="${by}"]`);
  const beyond = link && new URL(link.href).searchParams.get("open");
  const name = (at >= 0 && rows[at + by]?.dataset.row) || beyond;
  if (name) openItem(name);
  return true;
}

document.addEventListener("click", (event) => {
  if (!panelOf() || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const row = event.target.closest("#live [data-row]");
  const step = event.target.closest("[data-step]");
  if (row?.dataset.row && !NARROW.matches) openItem(row.dataset.row);
  else if (step) stepPanel(Number(step.dataset.step));
  else if (event.target.closest("#panel [data-close]")) closePanel();
  else return;
  event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !isOpen() || document.querySelector("dialog[open]")) return;
  closePanel();
});

document.addEventListener("live:after", mark);
document.addEventListener("htmx:afterSettle", ({ target }) => {
  mark();
  if (!isFocusWanted || target.id !== "panel") return;
  isFocusWanted = false;
  target.querySelector("h2")?.focus({ preventScroll: true });
});

// Other filters are another list: nothing of it lies open.
document.addEventListener("htmx:pushedIntoHistory", () => {
  listShown = withOpen("");
  if (isOpen() && !new URL(window.location).searchParams.has("open")) panelOf().hidden = true;
});

addEventListener("popstate", (event) => {
  if (!panelOf() || event.state?.htmx) return;
  if (withOpen("") !== listShown) window.location.reload();
  else if (new URL(window.location).searchParams.has("open")) draw();
  else if (isOpen()) hide();
});

mark();
