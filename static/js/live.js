// Live parts, and whether they can be believed. A stream says when something is new (then parts are
// asked for anew, with their tags) and beats while nothing is; where the beats stop, the page says
// since when it is out of date. Everything here is extra: the pages read without it.
"use strict";

// The server beats each 1.5 s; nothing for this long, and it is away.
const SILENT_MS = 3500;
// Without a stream (a proxy holds it back) parts are asked for this often: a second later they are,
// at the latest, and an answer is here before the server is called away.
const POLL_MS = 2000;
// Relative times move, and what changed without a new row is seen.
const MINUTE_MS = 60_000;
const contact = document.getElementById("contact");
const title = document.title;
const icon = document.querySelector("link[rel=icon]");
let stream = null;
let beatAt = Date.now();
let contactAt = Date.now();
let askedAt = Date.now();
let isPaused = sessionStorage.getItem("paused") === "1";
let isNews = false;
// A request could not be sent; one could, and the server had no answer (its database is away).
let isLost = false;
let isFailing = false;

function ask() {
  isNews = false;
  askedAt = Date.now();
  document.body.dispatchEvent(new CustomEvent("tick"));
}

function glance() {
  askedAt = Date.now();
  document.body.dispatchEvent(new CustomEvent("glance"));
}

function heard() {
  isLost = false;
  contactAt = Date.now();
  show();
}

function show() {
  const isAway = isLost || isFailing || Date.now() - contactAt > SILENT_MS;
  document.body.classList.toggle("stale", isAway);
  document.body.classList.toggle("paused", isPaused && !isAway);
  if (!contact) return;
  const at = new Date(contactAt).toTimeString().slice(0, 8);
  const said = isAway ? `No contact since ${at}` : isPaused ? "Paused" : "Live";
  const state = contact.querySelector("[role=status]");
  // Read aloud when it changes, not with each beat.
  if (state.textContent !== said) state.textContent = said;
  contact.querySelector(".at").textContent = isAway ? "" : at;
  contact.querySelector("button").textContent = isPaused ? "Go on" : "Pause";
}

function open() {
  stream?.close();
  stream = new EventSource("/live/");
  stream.addEventListener("beat", () => {
    beatAt = Date.now();
    heard();
  });
  stream.addEventListener("message", () => {
    beatAt = Date.now();
    isNews = true;
    heard();
  });
}

// Many news of one second are asked for once.
setInterval(() => {
  const now = Date.now();
  if (document.hidden) return;
  const isSilent = now - beatAt > SILENT_MS;
  // A browser gives up on a stream that was refused.
  if (isSilent && (!stream || stream.readyState === EventSource.CLOSED)) open();
  const isRunning = document.querySelector("[data-running]") !== null;
  const wait = isSilent || isRunning ? POLL_MS : MINUTE_MS;
  const isDue = now - askedAt > wait;
  if (!isPaused && (isNews || isDue)) ask();
  // A page that stands still must know, too, whether the server is there.
  else if (isSilent && isDue) glance();
  show();
}, 1000);

// A tab that nobody looks at holds no connection; its title asks twice a minute.
setInterval(() => {
  if (document.hidden) glance();
}, 30_000);

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stream?.close();
    stream = null;
  } else {
    contactAt = beatAt = Date.now();
    open();
    if (!isPaused) ask();
  }
});

contact?.querySelector("button").addEventListener("click", () => {
  isPaused = !isPaused;
  sessionStorage.setItem("paused", isPaused ? "1" : "0");
  if (!isPaused) ask();
  show();
});

document.addEventListener("htmx:configRequest", (event) => {
  const { elt, headers, parameters, verb, triggeringEvent } = event.detail;
  if (["tick", "glance"].includes(triggeringEvent?.type)) {
    if (elt.dataset.etag) headers["If-None-Match"] = elt.dataset.etag;
  }
  if (verb !== "get") return;
  // Blank filters stay out of the address.
  for (const [name, value] of Object.entries(parameters)) if (value === "") delete parameters[name];
});

// A fragment that came while somebody marks text in it, or reads an opened part, waits its turn;
// what is marked `data-always` does not, and the page says that the rest waits.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { requestConfig, target } = event.detail;
  if (requestConfig.triggeringEvent?.type !== "tick") return;
  const selection = document.getSelection();
  // A page may have a second part that comes along with the first.
  const parts = target.id === "live" ? [target, document.getElementById("live-rest")] : [target];
  const isRead = (part) =>
    part?.querySelector("details[open], input:focus") ||
    (!selection.isCollapsed && part?.contains(selection.anchorNode));
  const isHeld = parts.some(isRead);
  document.body.classList.toggle("held-up", isHeld);
  if (!isHeld) return;
  event.detail.shouldSwap = false;
  const news = new DOMParser().parseFromString(event.detail.serverResponse, "text/html");
  for (const part of news.querySelectorAll("[data-always]")) {
    const shown = document.getElementById(part.id);
    if (shown && shown.innerHTML !== part.innerHTML) shown.replaceChildren(...part.childNodes);
  }
});

// What waited is asked for as soon as nobody reads there any more.
for (const name of ["toggle", "selectionchange", "focusout"]) {
  document.addEventListener(
    name,
    () => {
      if (document.body.classList.contains("held-up")) isNews = true;
    },
    { capture: true },
  );
}

document.addEventListener("htmx:sendError", () => {
  isLost = true;
  show();
});
document.addEventListener("htmx:afterOnLoad", (event) => {
  isFailing = event.detail.xhr.status >= 500;
  if (isFailing) show();
  else heard();
});

// How many conversations are critical: in the title and the icon, for who looks at another tab.
document.addEventListener("htmx:afterSettle", () => {
  const reds = Number(document.getElementById("reds")?.dataset.count ?? 0);
  const said = (reds ? `(${reds}) ` : "") + title;
  const shown = reds ? icon?.dataset.alert : icon?.dataset.calm;
  // Only what changes: a browser asks for an icon that is set anew, and keeps the old one's rules.
  if (document.title !== said) document.title = said;
  if (icon && icon.getAttribute("href") !== shown) icon.href = shown;
});

contact?.querySelector("button").removeAttribute("hidden");
if (!document.hidden) open();
show();
