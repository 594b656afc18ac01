// The fill curve under the pointer, the finger and the arrow keys: a crosshair with what is known of
// a generation. Extra to the tables below it, which have the same numbers. A module: its names are
// its own.

const SVG = "http://www.w3.org/2000/svg";
// As helmdash/pages/parts/curve_points.py writes them.
const POINT = /^(?:@(\d+):)?(?:~(\d+):)?(-|\d+)\/(\d)(t?)(\??)(?:!(.+))?$/;
const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10 };
// What is read, and where: a part that comes anew (live.js) goes on where its reader was.
let shownAt = null;
let isSwapping = false;

function pointsOf(box) {
  if (box.points) return box.points;
  const levels = box.dataset.levels.split(" ");
  let generation = 0;
  let limit = 0;
  box.points = (box.dataset.points ? box.dataset.points.split(" ") : []).map((word) => {
    const [, at, other, tokens, level, cut, doubt, cause] = POINT.exec(word);
    generation = at ? Number(at) : generation + 1;
    limit = other === undefined ? limit : Number(other);
    const count = tokens === "-" ? null : Number(tokens);
    return { generation, limit, count, level: levels[level], cut, doubt, cause };
  });
  return box.points;
}

function told(point) {
  const share = point.limit ? ` (${Math.floor((100 * point.count) / point.limit)} % of the limit)` : "";
  const count = point.count?.toLocaleString("en");
  const tokens =
    count === undefined
      ? "usage not reported"
      : point.doubt
        ? `${count} tokens reported, probably cut upstream and not trusted`
        : `${count} tokens${share}`;
  const notes = [tokens, point.level];
  if (point.cut) notes.push("trimmed");
  if (point.cause) notes.push(`failed: ${point.cause}`);
  return notes.join(" · ");
}

function addressOf(box, point) {
  const project = encodeURIComponent(document.body.dataset.project);
  const path = box.dataset.curve.replace("/generations/0/", `/generations/${point.generation}/`);
  return `${path}?project=${project}`;
}

function draw(chart, point) {
  const { x, step, top, bottom, most } = chart.dataset;
  const first = pointsOf(chart.parentElement)[0].generation;
  const at = Number(x) + Number(step) * (point.generation - first);
  const tall = bottom - top;
  const height = point.count === null ? bottom : bottom - (tall * point.count) / most;
  let cross = chart.querySelector(".cross");
  if (!cross) {
    cross = document.createElementNS(SVG, "path");
    cross.setAttribute("class", "cross");
    chart.append(cross);
  }
  cross.setAttribute("d", `M${at},${top} V${bottom} M${at - 5},${height} a5,5 0 1,0 10,0 a5,5 0 1,0 -10,0`);
  return at / chart.viewBox.baseVal.width;
}

function show(chart, point) {
  const box = chart.parentElement;
  const share = draw(chart, point);
  let tip = box.querySelector(".tip");
  if (!tip) {
    tip = document.createElement("div");
    tip.className = "tip";
    box.append(tip);
  }
  const link = document.createElement("a");
  link.href = addressOf(box, point);
  link.tabIndex = -1;
  link.textContent = `Generation ${point.generation.toLocaleString("en")}`;
  tip.replaceChildren(link, ` ${told(point)}`);
  tip.style.left = `${100 * share}%`;
  tip.style.transform = `translateX(${-100 * share}%)`;
  chart.setAttribute("aria-valuenow", point.generation);
  chart.setAttribute("aria-valuetext", tip.textContent);
  shownAt = { id: chart.id, generation: point.generation, hasFocus: document.activeElement === chart };
}

function hide(box) {
  if (isSwapping) return;
  box.querySelectorAll(".cross, .tip").forEach((part) => part.remove());
  shownAt = null;
}

function nearest(chart, clientX) {
  const frame = chart.getBoundingClientRect();
  const at = ((clientX - frame.left) / frame.width) * chart.viewBox.baseVal.width;
  const points = pointsOf(chart.parentElement);
  const wanted = points[0].generation + (at - chart.dataset.x) / (Number(chart.dataset.step) || 1);
  const far = (point) => Math.abs(point.generation - wanted);
  return points.reduce((best, point) => (far(point) < far(best) ? point : best));
}

// Scripts make the picture a control: without them it takes no focus.
function enhance() {
  for (const chart of document.querySelectorAll("[data-curve] > svg")) {
    const points = pointsOf(chart.parentElement);
    if (!points.length || chart.hasAttribute("tabindex")) continue;
    chart.setAttribute("role", "slider");
    chart.setAttribute("tabindex", "0");
    chart.setAttribute("aria-label", "Generation; Enter opens its call");
    chart.setAttribute("aria-valuemin", points[0].generation);
    chart.setAttribute("aria-valuemax", points.at(-1).generation);
    chart.setAttribute("aria-valuenow", points.at(-1).generation);
    chart.setAttribute("aria-valuetext", `Generation ${points.at(-1).generation} ${told(points.at(-1))}`);
    if (shownAt?.id !== chart.id) continue;
    const { generation, hasFocus } = shownAt;
    if (hasFocus) chart.focus({ preventScroll: true });
    const point = points.find((each) => each.generation === generation);
    if (point) show(chart, point);
  }
}

enhance();
// The old part loses the focus when it goes: that is no reader who has left.
document.addEventListener("live:before", () => (isSwapping = true));
document.addEventListener("htmx:beforeSwap", (event) => (isSwapping = event.detail.shouldSwap));
for (const name of ["live:after", "htmx:afterSettle"]) {
  document.addEventListener(name, () => {
    isSwapping = false;
    enhance();
  });
}

for (const name of ["pointermove", "pointerdown"]) {
  document.addEventListener(name, (event) => {
    const chart = event.target.closest("[data-curve] > svg");
    if (chart && pointsOf(chart.parentElement).length) show(chart, nearest(chart, event.clientX));
  });
}

document.addEventListener("pointerout", ({ target, relatedTarget, pointerType }) => {
  const box = target.closest("[data-curve]");
  const isLeft = box && !box.contains(relatedTarget) && !box.contains(document.activeElement);
  // A finger that is lifted leaves what it has found.
  if (isLeft && pointerType === "mouse") hide(box);
});

document.addEventListener("focusin", ({ target }) => {
  if (!target.matches("[data-curve] > svg[tabindex]") || shownAt?.id === target.id) return;
  show(target, pointsOf(target.parentElement).at(-1));
});

document.addEventListener("focusout", ({ target, relatedTarget }) => {
  const box = target.closest("[data-curve]");
  if (box?.isConnected && !box.contains(relatedTarget)) hide(box);
});

document.addEventListener("keydown", (event) => {
  const chart = event.target.closest("[data-curve] > svg");
  if (!chart) return;
  const points = pointsOf(chart.parentElement);
  const at = points.findIndex((point) => point.generation === shownAt?.generation);
  const ends = { Home: 0, End: points.length - 1 };
  if (event.key === "Enter" && at >= 0) {
    window.location.assign(addressOf(chart.parentElement, points[at]));
  } else if (event.key === "Escape") {
    hide(chart.parentElement);
  } else if (event.key in STEPS || event.key in ends) {
    event.preventDefault();
    const wanted = ends[event.key] ?? at + STEPS[event.key];
    show(chart, points[Math.min(Math.max(wanted, 0), points.length - 1)]);
  }
});
