// The share of lookups that a cache of some size answers: mean and range over texts, with the chosen size marked.
import { el, percent, size, sizeText, svg } from "./text.js";

const height = 250, left = 46, right = 14, top = 16, bottom = 38;

/** On the curve, straight between its points on the scale of the picture. */
function shareAt(curve, bytes) {
  if (bytes <= curve[0].memory_bytes) return curve[0].share;
  for (let i = 1; i < curve.length; i++) {
    const [low, high] = [curve[i - 1], curve[i]];
    if (bytes > high.memory_bytes) continue;
    const along = Math.log2(bytes / low.memory_bytes) / Math.log2(high.memory_bytes / low.memory_bytes);
    return low.share + along * (high.share - low.share);
  }
  return curve[curve.length - 1].share;
}

function axes(x, y, width, curve) {
  const lines = [];
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    lines.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }),
      svg("text", { class: "tick", x: left - 6, y: y(share) + 4, "text-anchor": "end" }, percent(share)));
  }
  const every = width < 430 ? 2 : 1;
  curve.forEach((point, index) => {
    if (index % every !== 0) return;
    lines.push(svg("text", { class: "tick", x: x(point.memory_bytes), y: height - bottom + 17, "text-anchor": "middle" },
      sizeText(point.memory_bytes).replace(/\.00?(?=\s)/, "").replace("iB", "")));
  });
  lines.push(svg("text", { class: "tick", x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" },
    "memory of the cache, in MiB (M) and GiB (G)"));
  return lines;
}

function drawing(curve, chosen, width) {
  const first = Math.log2(curve[0].memory_bytes), last = Math.log2(curve[curve.length - 1].memory_bytes);
  const x = (bytes) => left + ((width - left - right) * (Math.log2(bytes) - first)) / (last - first);
  const y = (share) => top + (height - top - bottom) * (1 - share);
  const along = (pick, points) => points.map((point) => `${x(point.memory_bytes).toFixed(1)},${y(point[pick]).toFixed(1)}`).join(" ");
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": caption(curve, chosen) },
    ...axes(x, y, width, curve),
    svg("polygon", { class: "band", points: `${along("most", curve)} ${along("least", [...curve].reverse())}` }),
    svg("polyline", { class: "curve", points: along("share", curve) }));
  if (chosen > 0) {
    const at = Math.min(Math.max(chosen, curve[0].memory_bytes), curve[curve.length - 1].memory_bytes);
    const share = shareAt(curve, at);
    const isLeft = x(at) > width * 0.6;
    picture.append(svg("line", { class: "chosen", x1: x(at), x2: x(at), y1: top, y2: height - bottom }),
      svg("circle", { class: "chosen", cx: x(at), cy: y(share), r: 5 }),
      svg("text", { class: "chosen-text", x: x(at) + (isLeft ? -9 : 9), y: y(share) + (share > 0.75 ? 20 : -10), "text-anchor": isLeft ? "end" : "start" },
        `${sizeText(chosen)}: ${percent(share)}`));
  }
  return picture;
}

const caption = (curve, chosen) => chosen > 0
  ? `A cache of ${sizeText(chosen)} answers about ${percent(shareAt(curve, chosen))} of the lookups.`
  : "No cache is planned for this placement.";

/** The picture, drawn anew when its width changes, and its figures as a table. */
export function hitShareCurve(curve, chosen) {
  const frame = el("div", { class: "curve-frame" });
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.max(260, Math.floor(entry.contentRect.width));
    if (width === drawn) return;
    drawn = width;
    frame.replaceChildren(drawing(curve, chosen, width));
  }).observe(frame);
  const rows = curve.map((point) => el("tr", {}, el("th", { scope: "row" }, size(point.memory_bytes)),
    ...[point.share, point.least, point.most].map((share) => el("td", {}, percent(share)))));
  return el("div", {}, frame,
    el("p", { class: "fine" }, `${caption(curve, chosen)} The band reaches from the least to the most of the texts it was measured on.`),
    el("details", { data: { key: "curve/figures" }, class: "more" }, el("summary", {}, "The curve's figures"),
      el("table", {}, el("thead", {}, el("tr", {}, ...["cache", "mean", "least", "most"].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, ...rows))));
}
