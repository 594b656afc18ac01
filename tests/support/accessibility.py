"""What axe finds wrong with a page, looking at each contrast of text to its ground once.

Four fifths of axe's time go into the contrast of texts, hundreds on a page, which have a few dozen
looks: colour, size and weight on the same grounds. All elements are held against all other rules;
contrast is asked of the first two of each look, in each scheme, until axe finds one of them well,
on whatever page they are. A look is made of computed styles, so no style sheet is taken at its
word. What its position may bring above something else has a ground that is no ancestor's: that is
always asked.
"""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_AXE = Axe().axe_script
_RUN = """
async ({options, known}) => {
  const MARK = "data-look-is-new";
  // The first may be one that axe cannot judge.
  const ENOUGH = 2;
  const WITH_A_VALUE = ["input", "select", "textarea", "button"];
  const CLEAR = "rgba(0, 0, 0, 0)";
  // By element: what its background, and those it lies on, have to do with contrast; null: unsure.
  const grounds = new Map(), plain = [];
  const isMoved = ({position, top, left}) => ["absolute", "fixed"].includes(position)
    || position === "relative" && [top, left].some(by => !["0px", "auto"].includes(by));
  const groundOf = element => {
    if (!element) return "";
    if (!grounds.has(element)) grounds.set(element, ground(element, getComputedStyle(element)));
    return grounds.get(element);
  };
  const ground = (element, style) => {
    const below = groundOf(element.parentElement), {backgroundColor: color, opacity} = style;
    // Texts on a gradient axe does not judge. Ours lie at the edges of what scrolls.
    if (style.backgroundImage.includes("gradient")) {
      element.style.backgroundImage = "none";
      plain.push(element);
    }
    const isFaded = opacity !== "1" || below !== null && below.includes("faded");
    if (isFaded) return below === null ? null : `${below} > ${color} faded ${opacity}`;
    if (color.startsWith("rgb(")) return color;
    if (below === null || isMoved(style)) return null;
    return color === CLEAR ? below : `${below} > ${color}`;
  };
  const lookOf = element => {
    const style = getComputedStyle(element), on = groundOf(element);
    if (on === null) return null;
    return [on, style.color, style.fontSize, style.fontWeight, style.textShadow].join(" / ");
  };
  const says = element => WITH_A_VALUE.includes(element.localName)
    || [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
  // As small as what is for screen readers alone is not seen.
  const isSeen = element => element.checkVisibility({visibilityProperty: true})
    && element.getBoundingClientRect().width > 1;
  const run = more => axe.run({...options, ...more});

  const looks = new Map();
  for (const element of document.querySelectorAll("body, body *"))
    if (says(element) && isSeen(element)) looks.set(element, lookOf(element));
  const times = new Map(known.map(look => [look, ENOUGH]));
  for (const [element, look] of looks) {
    const before = look === null ? 0 : times.get(look) || 0;
    times.set(look, before + 1);
    if (before < ENOUGH) element.setAttribute(MARK, "");
  }
  axe.configure({noHtml: true, rules: [{id: "color-contrast", selector: `[${MARK}]`}]});
  // Selectors are what takes long to make, of each element that passes.
  const told = await run({resultTypes: ["passes"], selectors: false, elementRef: true});
  const faulty = told.violations.length ? await run({resultTypes: ["violations"]}) : told;
  looks.forEach((_, element) => element.removeAttribute(MARK));
  plain.forEach(element => element.style.removeProperty("background-image"));
  const passed = told.passes.filter(rule => rule.id === "color-contrast")
    .flatMap(rule => rule.nodes.map(node => looks.get(node.element)));
  return {
    passed: [...new Set(passed)].filter(Boolean),
    faults: faulty.violations.flatMap(rule => rule.nodes.map(node =>
      `${rule.id} (${rule.impact}): ${rule.help}: ${node.target.join(" ")}`)),
  };
}
"""
# Looks whose contrast axe has found well, on any page of this process.
_well: set[str] = set()


def faults_of(page: Page, *, colours_alone: bool) -> list[str]:
    """One line for each rule and place; colours_alone: by the rules about colours."""
    options: dict[str, Any] = {}
    if colours_alone:
        options["runOnly"] = {"type": "tag", "values": ["cat.color"]}
        # Level AAA; off unless it is asked for, which the tag does.
        options["rules"] = {"color-contrast-enhanced": {"enabled": False}}
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE)
    told = page.evaluate(_RUN, {"options": options, "known": sorted(_well)})
    _well.update(told["passed"])
    faults: list[str] = told["faults"]
    return faults
