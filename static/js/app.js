// Keys, copy buttons, dialogs and forms. Everything here is extra:
// the pages read, filter and send forms without it.
"use strict";

const GO = {
  h: "/",
  c: "/conversations/",
  l: "/calls/",
  p: "/plans/",
  t: "/trims/",
  m: "/models/",
  b: "/budgets/",
  f: "/try/fit/",
  y: "/try/plan/",
};
const PROJECT = document.body.dataset.project;
let goPressedAt = 0;

// An address that was typed without its project says it from now on: reloaded or sent, it is exact.
const here = new URL(window.location);
if (PROJECT && !here.searchParams.has("project")) {
  here.searchParams.set("project", PROJECT);
  history.replaceState(history.state, "", here);
}

// On a narrow screen the navigation is a strip: the page that is shown shall be in view on it.
document.addEventListener("DOMContentLoaded", () => {
  const strip = document.querySelector(".nav");
  const here = strip?.querySelector("[aria-current]");
  if (here) strip.scrollLeft = here.offsetLeft - (strip.clientWidth - here.offsetWidth) / 2;
});

// A choice is in force as it is made: to apply it once more is no step to go back from.
document.addEventListener("htmx:beforeHistoryUpdate", ({ detail: { history: step } }) => {
  if (step.path === window.location.pathname + window.location.search) step.type = "replace";
});

// Who sent a form that was refused goes on at the first field that is wrong.
if (document.activeElement === document.body)
  document.querySelector("main form[method=post] [aria-invalid=true]")?.focus();

// What a form says of a field it judges while somebody types in it.
document.addEventListener("htmx:afterRequest", () => {
  for (const judge of document.querySelectorAll("[data-judges]")) {
    const field = document.getElementById(judge.dataset.judges);
    if ("invalid" in judge.dataset) field?.setAttribute("aria-invalid", "true");
    else field?.removeAttribute("aria-invalid");
  }
});

// --- copy buttons and dialogs -----------------------------------------------------------------

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    // No permission, or no secure context: mark the text so that Ctrl-C takes it.
    document.getSelection().selectAllChildren(source);
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => (button.textContent = before), 1600);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
  const opener = event.target.closest("[data-dialog]");
  if (opener) {
    event.preventDefault();
    document.getElementById(opener.dataset.dialog).showModal();
  }
});

// --- what unfolds above a page ---------------------------------------------------------------

function unfolded() {
  return [...document.querySelectorAll(".popover[open]")];
}

// A click elsewhere is done with it, also one that unfolds another.
document.addEventListener("click", ({ target }) => {
  for (const each of unfolded()) if (!each.contains(target)) each.open = false;
});

// Before the panel beside a list, which the same key closes.
document.addEventListener(
  "keydown",
  (event) => {
    const [first] = unfolded();
    if (event.key !== "Escape" || !first || document.querySelector("dialog[open]")) return;
    event.stopPropagation();
    first.open = false;
    first.querySelector("summary").focus();
  },
  true,
);

// --- parts that fold --------------------------------------------------------------------------

// Tables below each other are a page of many screens on a phone, and long ones anywhere: their names
// are shown, and what somebody has opened. Without scripts all lie open.
const PHONE = matchMedia("(max-width: 54rem)");
const wanted = new Map([[location.hash.slice(1), true]]);

function liesOpen({ dataset, classList }) {
  // Filters have a heading to open them by on a phone alone.
  if (classList.contains("fields") && !PHONE.matches) return true;
  const isFolded = PHONE.matches || "long" in dataset;
  return wanted.get(dataset.fold) ?? ("open" in dataset || !isFolded);
}

function fold() {
  for (const part of document.querySelectorAll("[data-fold]")) part.open = liesOpen(part);
}

document.addEventListener("click", ({ target }) => {
  const part = target.closest("summary")?.parentElement;
  if (part?.dataset.fold) wanted.set(part.dataset.fold, !part.open);
});
// Who is led to a part reads it.
window.addEventListener("hashchange", () => {
  wanted.set(location.hash.slice(1), true);
  fold();
});
PHONE.addEventListener("change", fold);
document.addEventListener("htmx:afterSettle", fold);
fold();

// --- keys -------------------------------------------------------------------------------------

function step(by) {
  // Beside a list the keys go on from the item that lies open (panel.js).
  if (stepPanel(by)) return;
  const rows = [...document.querySelectorAll("[data-row]")].filter(
    (row) => !row.closest("details:not([open])"),
  );
  const at = rows.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by;
  rows[next]?.focus();
}

function isTyping(target) {
  return target.closest("input, textarea, select, dialog[open], [contenteditable]") !== null;
}

const KEYS = {
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": () => document.getElementById("help")?.showModal(),
  j: () => step(1),
  k: () => step(-1),
  g: () => (goPressedAt = Date.now()),
};

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(target)) return;
  if (Date.now() - goPressedAt < 1200 && GO[key]) {
    window.location.assign(GO[key] + "?project=" + encodeURIComponent(PROJECT));
  } else if (KEYS[key]) {
    event.preventDefault();
    KEYS[key]();
  }
});
