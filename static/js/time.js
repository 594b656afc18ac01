// The time control: extra to their links and fields, which work without it.
"use strict";

// Times without a zone are the reader's own.
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
if (!document.cookie.split("; ").includes("helmdash_zone=" + ZONE)) {
  document.cookie = "helmdash_zone=" + ZONE + "; path=/; max-age=31536000; samesite=lax";
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

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-range]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (showRange(link.dataset.range)) event.preventDefault();
});

document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-time]")) showRange(target.value.trim());
});
