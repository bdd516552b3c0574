// A plan as the page shows it, one card a subject.
import { meter, stackedBar } from "./bars.js";
import { hitShareCurve } from "./curve.js";
import { recipeTabs } from "./recipes.js";
import { count, decimalText, el, figure, outcome, percent, placementText, size, sizeText, timeText } from "./text.js";

const card = (id, title, ...children) => el("section", { class: "card", id }, el("h2", {}, title), ...children);
const list = (className, texts) => el("ul", { class: className }, ...texts.map((text) => el("li", {}, text)));
const disclosure = (key, title, ...children) => el("details", { class: "more", data: { key } }, el("summary", {}, title), ...children);
const tile = (name, value, detail) => el("div", { class: "tile" }, el("dt", {}, name), el("dd", {}, el("strong", {}, value), detail ? el("span", { class: "fine" }, detail) : ""));

function verdict(plan) {
  const { speed, kv, table, load, targets } = plan;
  const { kind, sign, words } = outcome(plan);
  const estimate = plan.fits ? "estimate" : "estimate, if it fitted";
  const against = (isMet, words) => el("span", {}, estimate, el("b", { class: isMet ? "good" : "bad" }, `${isMet ? "✓" : "✕"} ${words}`));
  return el("section", { class: `card verdict ${kind}`, id: "verdict" },
    el("h2", {}, el("span", { class: "sign", "aria-hidden": "true" }, sign), el("span", { title: plan.fits ? null : decimalText(plan.missing_bytes) }, words)),
    el("p", { class: "sentence" }, plan.verdict),
    el("dl", { class: "tiles" },
      tile("Decode, one stream", `${figure(speed.decode_tok_s)} tok/s`, against(targets.tok_s_met, `request ${figure(speed.request_tok_s)}, target ${figure(targets.tok_s)}`)),
      tile("First token", timeText(speed.ttft_ms), against(targets.ttft_met, `target ${timeText(targets.ttft_ms)}`)),
      tile("Context in memory", count(kv.tokens), `tokens; asked: ${count(load.context)}${load.concurrency > 1 ? ` x ${count(load.concurrency)}` : ""}`),
      table ? tile("Table", placementText(table.placement), table.cache_bytes > 0 ? `cache ${sizeText(table.cache_bytes)}, ${percent(table.hit_share)} hits` : sizeText(table.bytes)) : "",
      plan.price_per_million_tokens !== null ? tile("A million tokens", figure(plan.price_per_million_tokens), "at the price given") : ""),
    plan.warnings.length > 0 ? el("div", { class: "warnings" }, el("h3", {}, plan.warnings.length > 1 ? `${plan.warnings.length} warnings` : "Warning"), list("", plan.warnings)) : "");
}

function pool(each) {
  const isKnown = each.capacity_bytes > 0;
  const rest = each.missing_bytes > 0 ? el("strong", { class: "bad" }, size(each.missing_bytes), " missing") : el("strong", { class: "good" }, size(each.free_bytes), " free");
  return el("div", { class: "pool" },
    el("div", { class: "pool-head" }, el("h3", {}, each.name, el("span", { class: "fine" }, ` ${each.each}`)),
      el("p", {}, size(each.used_bytes), isKnown ? " of " : " needed", isKnown ? size(each.capacity_bytes) : "", isKnown ? ", " : "", isKnown ? rest : "")),
    stackedBar({ key: `pool/${each.name}`, capacity: each.capacity_bytes, items: each.items.map((item) => ({ ...item, value: item.bytes })) }),
    el("p", { class: "fine" }, `Capacity: ${each.capacity_source}`));
}

function candidateRow(candidate, chosen, place) {
  const isChosen = candidate.placement === chosen;
  const button = el("button", { type: "button", data: { key: `candidate/${candidate.placement}` } }, "Plan it so");
  button.addEventListener("click", () => place(candidate.placement));
  const added = (ms) => (ms > 0 ? timeText(ms) : "nothing");
  const costs = candidate.fits && candidate.runs ? `adds ${added(candidate.us_per_step_added / 1000)} to a step and ${added(candidate.ms_per_chunk_added)} to a chunk` : "";
  return el("li", { class: isChosen ? "is-chosen" : "" },
    el("div", { class: "candidate-head" }, el("strong", {}, placementText(candidate.placement)),
      el("span", { class: `badge ${candidate.fits && candidate.runs ? "good" : "bad"}` }, candidate.fits && candidate.runs ? "✓ fits" : candidate.fits ? "✕ no engine" : "✕ out"),
      isChosen ? el("span", { class: "badge plain" }, "in this plan") : button),
    el("p", {}, candidate.reason),
    costs ? el("p", { class: "fine" }, costs) : "");
}

function share(name, readsPerS, limitShare) {
  const fill = el("div", { class: `fill ${limitShare > 1 ? "bad" : "plain"}` });
  fill.style.width = `${Math.min(100, 100 * limitShare)}%`;
  return el("div", { class: "meter" }, el("div", { class: "meter-head" }, el("span", { class: "label" }, name), el("span", {}, `${percent(limitShare)} of the limit`)),
    el("div", { class: "track", "aria-hidden": "true" }, fill), el("p", { class: "fine" }, `${count(readsPerS)} reads a second`));
}

function tableCard(plan, place) {
  const { table } = plan;
  if (!table) return card("table", "The table", el("p", {}, "This model has no conditional-memory table."));
  const hidden = (isHidden, added) => (isHidden ? "hidden behind the layers before it" : `adds ${added}`);
  return card("table", `The table: ${placementText(table.placement)}`,
    el("p", {}, table.reason),
    el("div", { class: "pair" },
      share("Decode", table.reads_per_s_decode, table.limit_share_decode),
      share("Prefill", table.reads_per_s_prefill, table.limit_share_prefill)),
    el("dl", { class: "facts" },
      el("dt", {}, "Rows of a decode step"), el("dd", {}, `${timeText(table.us_per_step / 1000)}, ${hidden(table.is_hidden_decode, timeText(table.us_per_step_added / 1000))}`),
      el("dt", {}, "Rows of a chunk"), el("dd", {}, `${timeText(table.ms_per_chunk)}, ${hidden(table.is_hidden_prefill, timeText(table.ms_per_chunk_added))}`),
      el("dt", {}, "Its own bottleneck"), el("dd", {}, table.bottleneck || "none"),
      el("dt", {}, "Next bottleneck of the plan"), el("dd", {}, plan.next_bottleneck || "none")),
    el("h3", {}, "Every place it could go"),
    el("ul", { class: "candidates" }, ...table.candidates.map((candidate) => candidateRow(candidate, table.placement, place))),
    table.assumptions.length > 0 ? disclosure("table/assumptions", "What these figures assume", list("notes", table.assumptions)) : "");
}

const milliseconds = { text: timeText, node: (ms) => el("span", {}, timeText(ms)), exact: null };
const terms = (title, key, list) => list.length === 0 ? "" : el("div", { class: "pool" }, el("h3", {}, title, el("span", { class: "fine" }, ` ${timeText(list.reduce((sum, term) => sum + term.ms, 0))} in all`)),
  stackedBar({ key, unit: milliseconds, items: list.map((term) => ({ ...term, value: term.ms })) }));

function speedCard(plan) {
  const { speed, targets, load } = plan;
  return card("speed", "Speed, estimated",
    el("div", { class: "pair" },
      meter({ label: "Time to the first token", value: speed.ttft_ms, target: targets.ttft_ms, text: timeText, isMet: targets.ttft_met, detail: `of a prompt of ${count(load.prompt)} tokens; less is better` }),
      meter({ label: "Tokens a second of a request", value: speed.request_tok_s, target: targets.tok_s, text: (x) => `${figure(x)} tok/s`, isMet: targets.tok_s_met, detail: `${count(load.output)} tokens over the whole time of the request` })),
    el("dl", { class: "facts" },
      el("dt", {}, "Decode, one stream"), el("dd", {}, `${figure(speed.decode_tok_s)} tok/s`),
      el("dt", {}, "Decode, all streams"), el("dd", {}, `${figure(speed.decode_total_tok_s)} tok/s`),
      el("dt", {}, "Prefill"), el("dd", {}, `${figure(speed.prefill_tok_s)} tok/s`),
      speed.tokens_per_step !== 1 ? el("dt", {}, "Tokens a step, with drafts") : "", speed.tokens_per_step !== 1 ? el("dd", {}, figure(speed.tokens_per_step)) : ""),
    el("p", { class: "bound" }, "Upper bound, not an estimate: memory bandwidth over the ", size(speed.bytes_per_token), " that a token reads is ",
      el("strong", {}, `${figure(speed.decode_bound_tok_s)} tok/s`), "."),
    terms("A decode step", "step", speed.step), terms("A prefill chunk", "chunk", speed.chunk),
    disclosure("speed/assumptions", "What the estimate assumes", list("notes", speed.assumptions)));
}

const sequences = (number, context) => `${count(number)} ${number === 1 ? "sequence" : "sequences"} of ${count(context)} tokens`;

function kvCard(plan) {
  const { kv, load } = plan;
  return card("kv", "Context",
    el("p", {}, "A token takes ", size(kv.bytes_per_token), ` of each device at ${load.kv}. Asked for are ${sequences(load.concurrency, load.context)}, which take `, size(kv.asked_bytes),
      `. With all that is left, ${count(kv.tokens)} tokens fit, or ${sequences(kv.concurrency_most, load.context)}.`),
    el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "What a token keeps"), el("th", { scope: "col" }, "Size"), el("th", { scope: "col" }, "Formula"))),
      el("tbody", {}, ...kv.terms.map((term) => el("tr", {}, el("th", { scope: "row" }, term.name), el("td", {}, size(term.bytes)), el("td", { class: "formula" }, term.formula))))));
}

function notesCard(plan) {
  const { model, machine } = plan;
  return card("notes", "What this plan is made of",
    plan.notes.length > 0 ? list("notes", plan.notes) : "",
    plan.memory_fraction_band ? el("p", {}, `Memory fraction: works from ${figure(plan.memory_fraction_band[0])} to ${figure(plan.memory_fraction_band[1])}.`) : "",
    disclosure("notes/model", `Model: ${model.name}, ${model.precision}`,
      el("p", {}, size(model.bytes_total), " in all, ", size(model.bytes_table), " of them the table. ", model.is_measured ? "Read from the checkpoint." : "Described, not read from a checkpoint."),
      el("table", {}, el("tbody", {}, ...model.parts.map((part) => el("tr", {}, el("th", { scope: "row" }, part.part), el("td", {}, size(part.bytes)), el("td", { class: "source" }, part.source))))),
      el("p", { class: "source" }, model.source)),
    disclosure("notes/machine", `Machine: ${machine.name}`,
      el("dl", { class: "facts" },
        el("dt", {}, "Sold as"), el("dd", {}, machine.sold_as), el("dt", {}, "Installed"), el("dd", {}, size(machine.installed_bytes)),
        el("dt", {}, "Visible"), el("dd", {}, size(machine.visible_bytes)), el("dt", {}, "Bandwidth"), el("dd", {}, `${figure(machine.bandwidth_bytes_per_s / 1e9)} GB/s`),
        el("dt", {}, "Drive"), el("dd", {}, `${machine.drive.name}: ${count(machine.drive.reads_per_s)} reads/s, one read ${figure(machine.drive.serial_us)} us (${machine.drive.source})`)),
      list("notes source", machine.sources)));
}

/** The cards of a plan, `comparison` among them. `place(placement)` is called when a person picks another place for the table. */
export function showPlan(plan, { announce, place, comparison }) {
  return [
    verdict(plan),
    card("pools", "Memory, pool by pool", el("p", { class: "fine" }, "Point at a part, or open its line, for how it comes about."), ...plan.pools.map(pool)),
    comparison,
    tableCard(plan, place),
    speedCard(plan),
    plan.hit_share_curve.length > 0 ? card("hits", "What a cache answers", hitShareCurve(plan.hit_share_curve, plan.table?.cache_bytes ?? 0)) : null,
    kvCard(plan),
    card("recipes", "What to type", recipeTabs(plan.recipes, plan.engine, announce)),
    notesCard(plan),
  ];
}
