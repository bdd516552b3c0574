// Bars: what fills a pool, and a figure against its target. The bar itself is for the eye; its legend says the same in
// words, and is what the keyboard reaches.
import { decimalText, el, percent, size, sizeText } from "./text.js";

// The same thing has the same colour in every bar; the first pattern that matches counts.
const known = [
  [/kv|keys and values/, 3], [/cache|rows/, 1], [/routed expert|weights|checkpoint/, 0], [/dense|shared expert|arithmetic/, 2],
  [/reserve|system|overhead|fixed/, 4], [/table/, 5], [/state/, 6], [/activation/, 7], [/head|embedding/, 8], [/runtime/, 9], [/graph/, 10], [/draft/, 11],
];

function colours(items) {
  const chosen = items.map(({ name }) => known.find(([pattern]) => pattern.test(name.toLowerCase()))?.[1] ?? -1);
  const taken = new Set();
  for (const [index, colour] of chosen.entries()) {
    if (taken.has(colour)) chosen[index] = -1;
    taken.add(colour);
  }
  const free = known.map((_, colour) => colour).filter((colour) => !taken.has(colour));
  return chosen.map((colour, index) => colour >= 0 ? colour : free.shift() ?? index % known.length);
}

const letter = (index) => String.fromCharCode(65 + index);

function segment(className, value, scale, ...children) {
  const node = el("div", { class: `segment ${className}` }, el("span", { class: "inside" }, ...children));
  node.style.width = `${(100 * value) / scale}%`;
  return node;
}

const why = (item, unit) => el("p", { class: "why" },
  unit.exact ? `${unit.exact(item.value)}. ` : "",
  item.formula ? el("span", { class: "formula" }, item.formula) : "",
  item.source ? el("span", { class: "source" }, `Source: ${item.source}`) : "");

const bytesUnit = { text: sizeText, node: size, exact: decimalText };
const smallShare = 0.004;  // of the bar: not to be seen

/** One line of a legend: `mark` stands in its swatch; opened it shows `inside`. */
function legendLine(item, mark, colour, whole, key, unit, ...inside) {
  return el("li", {},
    el("details", { data: { key: `${key}/${item.name}` }, class: "line" },
      el("summary", {},
        el("span", { class: `swatch colour-${colour}`, "aria-hidden": "true" }, mark),
        el("span", { class: "name" }, item.name),
        el("span", { class: "value" }, unit.node(item.value)),
        el("span", { class: "share" }, whole > 0 ? percent(item.value / whole) : "")),
      ...inside));
}

const extraLine = (kind, value, whole, unit) => el("li", { class: `extra ${kind}` },
  el("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), el("span", { class: "name" }, kind),
  el("span", { class: "value" }, unit.node(value)), el("span", { class: "share" }, percent(value / whole)));

/** Parts too small to be seen become one, if there are several. */
function gathered(items, scale) {
  const small = items.filter((item) => item.value < smallShare * scale);
  if (small.length < 3) return items;
  const value = small.reduce((sum, item) => sum + item.value, 0);
  return [...items.filter((item) => !small.includes(item)), { name: `${small.length} smaller parts`, value, parts: small }];
}

/** What is free, or missing, in bar and legend. */
function addRest(bar, lines, used, capacity, scale, unit) {
  const mark = el("div", { class: "mark-line" });
  mark.style.left = `${(100 * capacity) / scale}%`;
  if (used > capacity) {
    const over = el("div", { class: "over" });
    over.style.left = mark.style.left;
    bar.classList.add("is-over");
    bar.append(over);
    lines.push(extraLine("missing", used - capacity, capacity, unit));
  } else if (used < capacity) {
    bar.append(segment("free", capacity - used, scale, el("span", { class: "long" }, "free "), el("span", { class: "longer" }, unit.text(capacity - used))));
    lines.push(extraLine("free", capacity - used, capacity, unit));
  }
  bar.append(mark);
}

/** Pointing at a part, or at its line, lifts it out and says how it comes about. */
function connect(items, segments, lines, bar, readout, unit) {
  items.forEach((item, index) => {
    const pick = (isPicked) => {
      bar.classList.toggle("picking", isPicked);
      segments[index].classList.toggle("picked", isPicked);
      if (isPicked) readout.replaceChildren(el("strong", {}, `${item.name}: ${unit.text(item.value)}`), item.formula ? ` = ${item.formula}` : "", item.source ? ` (${item.source})` : "");
    };
    const details = lines[index].querySelector("details");
    for (const node of [segments[index], lines[index]]) {
      node.addEventListener("pointerenter", () => pick(true));
      node.addEventListener("pointerleave", () => pick(false));
    }
    lines[index].addEventListener("focusin", () => pick(true));
    lines[index].addEventListener("focusout", () => pick(false));
    segments[index].addEventListener("click", () => { details.open = !details.open; });
  });
}

/**
 * A stacked bar with its legend. `items`: [{name, value, formula, source}]. `capacity`: where the mark is; what lies
 * beyond it is shown as missing. 0 where it is not known: the items are all there is.
 */
export function stackedBar({ items, capacity = 0, key, unit = bytesUnit }) {
  const used = items.reduce((sum, item) => sum + item.value, 0);
  const scale = Math.max(used, capacity) || 1;
  const shown = gathered(items.filter((item) => item.value > 0), scale);
  const chosen = colours(shown);
  const mark = (item, index) => (item.parts ? "…" : letter(index));
  const segments = shown.map((item, index) => segment(`colour-${chosen[index]}`, item.value, scale,
    el("b", {}, mark(item, index)), el("span", { class: "long" }, ` ${item.name} `), el("span", { class: "longer" }, unit.text(item.value))));
  const lines = shown.map((item, index) => legendLine(item, mark(item, index), chosen[index], capacity || used, key, unit,
    item.parts ? el("ul", { class: "small-parts" }, ...item.parts.map((part) => legendLine(part, "", chosen[index], capacity || used, key, unit, why(part, unit)))) : why(item, unit)));
  const bar = el("div", { class: "bar", "aria-hidden": "true" }, ...segments);
  const readout = el("p", { class: "readout" });
  connect(shown, segments, lines, bar, readout, unit);
  if (capacity > 0) addRest(bar, lines, used, capacity, scale, unit);
  return el("div", { class: "stack" }, el("div", { class: "bar-frame", "aria-hidden": "true" }, bar, readout), el("ul", { class: "legend" }, ...lines));
}

/** A figure against its target: a track, a mark where the target is, and whether it is met, in words. */
export function meter({ label, value, target, text, isMet, detail }) {
  const most = Math.max(value, target) * 1.15 || 1;
  const fill = el("div", { class: `fill ${isMet ? "good" : "bad"}` });
  fill.style.width = `${(100 * value) / most}%`;
  const mark = el("div", { class: "target-mark" });
  mark.style.left = `${(100 * target) / most}%`;
  return el("div", { class: "meter" },
    el("div", { class: "meter-head" },
      el("span", { class: "label" }, label),
      el("span", { class: `badge ${isMet ? "good" : "bad"}` }, isMet ? "✓ met" : "✕ missed")),
    el("p", { class: "meter-value" }, el("strong", {}, text(value)), ` estimated, target ${text(target)}`),
    el("div", { class: "track", "aria-hidden": "true" }, fill, mark),
    detail ? el("p", { class: "fine" }, detail) : "");
}
