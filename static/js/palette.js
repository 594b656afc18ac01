// Ctrl-K or Cmd-K: to a page, an id, a model or an action by its name. Extra to the page /find/.
"use strict";

const palette = document.getElementById("palette");
const sought = document.getElementById("palette-text");
const found = document.getElementById("palette-found");
const options = () => [...found.querySelectorAll("[role=option]")];
const chosen = () => found.querySelector('[aria-selected="true"]');

function openPalette() {
  if (palette.open) return;
  // One dialog at a time: the one that is open gives way.
  document.querySelector("dialog[open]")?.close();
  palette.showModal();
  sought.select();
  htmx.trigger(sought.form, "opened");
}

function choose(option) {
  for (const other of options()) other.setAttribute("aria-selected", String(other === option));
  if (!option) return sought.removeAttribute("aria-activedescendant");
  sought.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function move(by) {
  const all = options();
  if (all.length) choose(all[(all.indexOf(chosen()) + by + all.length) % all.length]);
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
  event.preventDefault();
  openPalette();
});

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-palette]") || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  openPalette();
});

sought.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by) move(by);
  else if (event.key === "Enter" && chosen()) chosen().click();
  else return;
  event.preventDefault();
});

found.addEventListener("htmx:afterSettle", () => {
  const count = options().length;
  document.getElementById("palette-count").textContent = `${count} found`;
  found.scrollTop = 0;
  choose(options()[0]);
});
