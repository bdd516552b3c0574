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

function segment(className, value, scale, title, ...children) {
  const node = el("div", { class: `segment ${className}`, title }, el("span", { class: "inside" }, ...children));
  node.style.width = `${(100 * value) / scale}%`;
  return node;
}

function legendLine(item, index, colour, total, key, unit) {
  return el("li", {},
    el("details", { data: { key: `${key}/${item.name}` }, class: "line" },
      el("summary", {},
        el("span", { class: `swatch colour-${colour}`, "aria-hidden": "true" }, letter(index)),
        el("span", { class: "name" }, item.name),
        el("span", { class: "value" }, unit.node(item.value)),
        el("span", { class: "share" }, percent(item.value / total))),
      el("p", { class: "why" },
        unit.exact ? `${unit.exact(item.value)}. ` : "",
        item.formula ? el("span", { class: "formula" }, item.formula) : "",
        item.source ? el("span", { class: "source" }, `Source: ${item.source}`) : "")));
}

const bytesUnit = { text: sizeText, node: size, exact: decimalText };

/**
 * A stacked bar with its legend. `items`: [{name, value, formula, source}]. `capacity`: where the mark is; what lies
 * beyond it is shown as missing. Without one, the items are all there is.
 */
export function stackedBar({ items, capacity, key, unit = bytesUnit }) {
  const shown = items.filter((item) => item.value > 0);
  const used = shown.reduce((sum, item) => sum + item.value, 0);
  const scale = Math.max(used, capacity ?? 0) || 1;
  const chosen = colours(shown);
  const readout = el("p", { class: "readout", "aria-hidden": "true" });
  const resting = `${capacity === undefined ? `${unit.text(used)} together. ` : ""}Point at a part, or open its line, for how it comes about.`;
  const say = (item) => {
    readout.replaceChildren(item
      ? `${item.name}: ${unit.text(item.value)}${item.formula ? ` = ${item.formula}` : ""}${item.source ? ` (${item.source})` : ""}`
      : resting);
  };
  say(null);

  const segments = shown.map((item, index) => segment(`colour-${chosen[index]}`, item.value, scale,
    `${item.name}: ${unit.text(item.value)}`,
    el("b", {}, letter(index)), el("span", { class: "long" }, ` ${item.name} `), el("span", { class: "longer" }, unit.text(item.value))));
  const bar = el("div", { class: "bar", "aria-hidden": "true" }, ...segments);
  const lines = shown.map((item, index) => legendLine(item, index, chosen[index], capacity ?? used, key, unit));

  if (capacity !== undefined) {
    const mark = el("div", { class: "mark-line" });
    mark.style.left = `${(100 * capacity) / scale}%`;
    bar.append(mark);
    if (used < capacity) {
      bar.append(segment("free", capacity - used, scale, `free: ${unit.text(capacity - used)}`,
        el("span", { class: "long" }, "free "), el("span", { class: "longer" }, unit.text(capacity - used))));
      lines.push(extraLine("free", "free", capacity - used, capacity, unit));
    }
    if (used > capacity) {
      bar.classList.add("is-over");
      const over = el("div", { class: "over", title: `missing: ${unit.text(used - capacity)}` });
      over.style.left = `${(100 * capacity) / scale}%`;
      bar.append(over);
      lines.push(extraLine("missing", "missing", used - capacity, capacity, unit));
    }
  }
  shown.forEach((item, index) => {
    const line = lines[index];
    for (const [node, on, off] of [[segments[index], "pointerenter", "pointerleave"], [line, "pointerenter", "pointerleave"], [line, "focusin", "focusout"]]) {
      node.addEventListener(on, () => { say(item); bar.classList.add("picking"); segments[index].classList.add("picked"); });
      node.addEventListener(off, () => { say(null); bar.classList.remove("picking"); segments[index].classList.remove("picked"); });
    }
    segments[index].addEventListener("click", () => { const details = line.querySelector("details"); details.open = !details.open; });
  });
  return el("div", { class: "stack" }, bar, readout, el("ul", { class: "legend" }, ...lines));
}

const extraLine = (kind, name, value, total, unit) => el("li", { class: `extra ${kind}` },
  el("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), el("span", { class: "name" }, name),
  el("span", { class: "value" }, unit.node(value)), el("span", { class: "share" }, percent(value / total)));

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
