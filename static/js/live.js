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
// An answer that takes longer will not come.
const ANSWER_MS = 15_000;
const GONE = [403, 404, 409];
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
let silence = 0;
// Parts that are asked for just now; and those that came and that htmx has not seen yet.
const asked = new Set();
const unseen = new Set();

function ask() {
  isNews = false;
  askedAt = Date.now();
  document.querySelectorAll("[data-live]").forEach(refresh);
}

function glance() {
  askedAt = Date.now();
  document.querySelectorAll("[data-glance]").forEach(refresh);
}

function heard() {
  isLost = false;
  contactAt = Date.now();
  clearTimeout(silence);
  silence = setTimeout(show, SILENT_MS + 1);
  show();
}

function show() {
  const isAway = isLost || isFailing || Date.now() - contactAt > SILENT_MS;
  document.body.classList.toggle("stale", isAway);
  document.body.classList.toggle("paused", isPaused && !isAway);
  if (!contact) return;
  const at = new Date(contactAt).toTimeString().slice(0, 8);
  const said = isAway ? "Away since" : isPaused ? "Paused" : "Live";
  const state = contact.querySelector("[role=status]");
  // Read aloud when it changes, not with each beat.
  if (state.textContent !== said) state.textContent = said;
  contact.querySelector(".at").textContent = at;
  // The banner may lie above it.
  document.getElementById("away-since").textContent = isAway ? ` since ${at}` : "";
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

// A tab stays open for a day: what an answer takes is done by the browser itself, and by few lines,
// whose compiled code is most of what such a tab gathers. htmx looks at a part when somebody comes
// near it.
async function refresh(part) {
  const address = part.dataset.live;
  if (asked.has(address)) return;
  asked.add(address);
  try {
    const headers = {
      "HX-Request": "true",
      "HX-Current-URL": window.location.href,
      "If-None-Match": part.dataset.etag ?? "",
    };
    const response = await fetch(address, { headers, signal: AbortSignal.timeout(ANSWER_MS) });
    const text = response.status === 200 ? await response.text() : "";
    isFailing = response.status >= 500;
    if (!isFailing) heard();
    // Nobody is signed in any more; or what the page is about is gone, and it says so itself.
    const elsewhere = response.headers.get("HX-Redirect");
    if (elsewhere) window.location.assign(elsewhere);
    else if (GONE.includes(response.status)) window.location.reload();
    else if (text && part.isConnected) renew(part, text);
  } catch {
    isLost = true;
  } finally {
    asked.delete(address);
    show();
  }
}

// A page may have a second part that comes along with the first.
function renew(part, text) {
  const news = document.createElement("template");
  news.innerHTML = text;
  const parts = [...news.content.children];
  const olds = parts.map((each, at) => (at ? document.getElementById(each.id) : part));
  const isHeld = olds.some(isRead);
  document.body.classList.toggle("held-up", isHeld);
  if (isHeld) return renewAlways(news.content);
  const focus = olds.some((old) => old?.contains(document.activeElement)) && document.activeElement.id;
  part.dispatchEvent(new CustomEvent("live:before", { bubbles: true }));
  parts.forEach((each, at) => {
    unseen.delete(olds[at]);
    unseen.add(each);
    olds[at]?.replaceWith(each);
  });
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  parts[0].dispatchEvent(new CustomEvent("live:after", { bubbles: true }));
}

// A part in which somebody marks text, types, or reads what is opened waits its turn.
function isRead(part) {
  const selection = document.getSelection();
  return (
    part?.querySelector("details[open], input:focus, textarea:focus, select:focus") ||
    (!selection.isCollapsed && part?.contains(selection.anchorNode))
  );
}

// What is marked so does not wait, and the page says that the rest does.
function renewAlways(news) {
  for (const part of news.querySelectorAll("[data-always]")) {
    const shown = document.getElementById(part.id);
    if (shown && shown.innerHTML !== part.innerHTML) shown.replaceChildren(...part.childNodes);
  }
}

// Before what is done there reaches it: listeners that htmx adds now are called, too.
for (const name of ["pointerover", "pointerdown", "focusin", "keydown", "submit", "click"]) {
  document.addEventListener(
    name,
    () => {
      unseen.forEach((part) => part.isConnected && htmx.process(part));
      unseen.clear();
    },
    { capture: true },
  );
}
document.body.addEventListener("tick", ask);

document.addEventListener("htmx:configRequest", (event) => {
  const { parameters, verb } = event.detail;
  if (verb !== "get") return;
  // Blank filters stay out of the address.
  for (const [name, value] of Object.entries(parameters)) if (value === "") delete parameters[name];
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
function tellReds() {
  const reds = Number(document.getElementById("reds")?.dataset.count ?? 0);
  const said = (reds ? `(${reds}) ` : "") + title;
  const shown = reds ? icon?.dataset.alert : icon?.dataset.calm;
  // Only what changes: a browser asks for an icon that is set anew, and keeps the old one's rules.
  if (document.title !== said) document.title = said;
  if (icon && icon.getAttribute("href") !== shown) icon.href = shown;
}
document.addEventListener("live:after", tellReds);
document.addEventListener("htmx:afterSettle", tellReds);

contact?.querySelector("button").removeAttribute("hidden");
if (!document.hidden) open();
glance();
show();
