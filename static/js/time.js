// The time control, and axes that are dragged over to look closer (bars over time, the strip of a
// whole conversation): extra to their links and fields, which work without it.
"use strict";

// Times without a zone are the reader's own.
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
if (!document.cookie.split("; ").includes("helmdash_zone=" + ZONE)) {
  document.cookie = "helmdash_zone=" + ZONE + "; path=/; max-age=31536000; samesite=lax";
  // What stands there was written for another zone.
  document.addEventListener("DOMContentLoaded", () => {
    document.body.dispatchEvent(new CustomEvent("tick"));
  });
}

function showRange(text) {
  const field = document.querySelector("[data-time]");
  if (!field) return false;
  field.value = text;
  for (const other of field.form.elements) {
    if (other.name === "since" || other.name === "until") other.value = "";
  }
  for (const preset of document.querySelectorAll(".time [data-range]")) {
    if (preset.dataset.range === text) preset.setAttribute("aria-current", "true");
    else preset.removeAttribute("aria-current");
  }
  field.form.requestSubmit();
  return true;
}

// A bar that is followed by a key goes with its drawing: the focus stays among the bars.
let isBarFollowed = false;

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-range]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  isBarFollowed = link === document.activeElement && link.closest("[data-zoom]") !== null;
  if (showRange(link.dataset.range)) event.preventDefault();
});

document.addEventListener("htmx:afterSettle", ({ detail }) => {
  // What else comes meanwhile, a poll or a count, brings no drawing of the new range.
  if (!isBarFollowed || !detail.requestConfig?.elt.matches("form")) return;
  isBarFollowed = false;
  const bar = document.querySelector('[data-zoom] a[tabindex="0"]');
  (bar ?? document.querySelector("[data-time]")).focus();
});

document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-time]")) showRange(target.value.trim());
});

let drag = null;

// What a place of an axis means: ms since 1970, or a generation.
function valueAt(chart, x) {
  const box = chart.getBoundingClientRect();
  const share = Math.min(Math.max((x - box.left) / box.width, 0), 1);
  const first = Number(chart.dataset.first);
  return first + share * (Number(chart.dataset.end) - first);
}

function lookCloser(chart, first, end) {
  if (chart.dataset.zoom === "generations") {
    const address = new URL(window.location);
    address.searchParams.set("from", Math.floor(first));
    address.searchParams.set("to", Math.max(Math.floor(first) + 1, Math.ceil(end) - 1));
    address.hash = "curve-title";
    window.location.assign(address);
  } else if (end - first >= 60_000) {
    const minute = (moment) => new Date(moment).toISOString().slice(0, 16) + "Z";
    showRange(minute(first) + ".." + minute(end));
  }
}

document.addEventListener("pointerdown", (event) => {
  const chart = event.target.closest("[data-zoom]");
  if (!chart || event.button) return;
  const brush = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  brush.setAttribute("class", "brush");
  drag = { chart, brush, from: event.clientX };
});

document.addEventListener("pointermove", (event) => {
  if (!drag || Math.abs(event.clientX - drag.from) < 5) return;
  const box = drag.chart.getBoundingClientRect();
  const [left, right] = [drag.from, event.clientX].sort((a, b) => a - b);
  drag.chart.append(drag.brush);
  drag.brush.setAttribute("x", left - box.left);
  drag.brush.setAttribute("width", right - left);
  drag.brush.setAttribute("height", drag.chart.dataset.zoom ? "40" : "74");
});

document.addEventListener("pointerup", (event) => {
  if (!drag) return;
  const { chart, brush, from } = drag;
  drag = null;
  if (!brush.isConnected) return;
  brush.remove();
  // The end of a drag is no click on the bar below it.
  const swallow = (click) => {
    click.stopPropagation();
    click.preventDefault();
  };
  addEventListener("click", swallow, { capture: true, once: true });
  setTimeout(() => removeEventListener("click", swallow, { capture: true }));
  const ends = [valueAt(chart, from), valueAt(chart, event.clientX)];
  lookCloser(chart, Math.min(...ends), Math.max(...ends));
});

// Bars are many: one of them takes the focus, the arrows go on to its neighbors.
document.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const chart = event.target.closest("[data-zoom]");
  if (!step || !chart) return;
  const bars = [...chart.querySelectorAll("a")];
  bars[bars.indexOf(event.target.closest("a")) + step]?.focus();
});
