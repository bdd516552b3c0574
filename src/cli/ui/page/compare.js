// Plans side by side: the one on the page, and up to two that were pinned. Pins travel in the link.
import { el, figure, outcome, placementText, show, size, timeText, count } from "./text.js";

const pinsMost = 2;

const machineText = ({ devices, nodes, name }) => `${devices > 1 ? `${devices} x ` : ""}${name}${nodes > 1 ? `, ${nodes} nodes` : ""}`;

function facts(plan) {
  const { speed, table, kv, targets } = plan;
  const yes = (isMet) => (isMet ? "✓ " : "✕ ");
  const price = plan.price_per_million_tokens;
  return [
    ["Fits", plan.fits ? "✓ yes" : el("span", {}, "✕ ", size(plan.missing_bytes), " short")],
    ["Runs", plan.runs ? `✓ ${plan.engine}` : `! not with ${plan.engine}`],
    ["Table", table ? placementText(table.placement) : "none"],
    ["Tokens in memory", count(kv.tokens)],
    ["Decode, one stream", `${figure(speed.decode_tok_s)} tok/s`],
    ["Decode, all streams", `${figure(speed.decode_total_tok_s)} tok/s`],
    ["First token", yes(targets.ttft_met) + timeText(speed.ttft_ms)],
    ["Request", `${yes(targets.tok_s_met)}${figure(speed.request_tok_s)} tok/s`],
    ...(price === null ? [] : [["A million tokens", figure(price)]]),
  ];
}

export class Comparison {
  constructor({ catalog, fetchPlan, onChange, onTake }) {
    Object.assign(this, { catalog, fetchPlan, onChange, onTake });
    this.pins = [];  // {link, plan or null, error}
    this.current = null;
    this.node = el("section", { class: "card", id: "compare" });
  }

  links() { return this.pins.map((pin) => ["pin", pin.link]); }

  setCurrent(options, plan) {
    this.current = { link: String(new URLSearchParams(options)), plan };
    this.#draw();
  }

  /** Pins as they stand in a link; their plans are asked for. */
  restore(links) {
    this.pins = [];
    for (const link of links.slice(0, pinsMost)) this.#add(link);
    this.#draw();
  }

  async #add(link, plan = null) {
    const pin = { link, plan, error: null };
    this.pins.push(pin);
    if (plan) return;
    try {
      pin.plan = await this.fetchPlan([...new URLSearchParams(link)]);
    } catch (error) {
      pin.error = error.message;
    }
    this.#draw();
  }

  #pin(link, plan) {
    if (this.pins.length >= pinsMost) this.pins.shift();
    this.#add(link, plan);
    this.onChange();
    this.#draw();
  }

  #card(entry, title, actions) {
    const inside = entry.plan
      ? el("dl", {}, ...facts(entry.plan).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]))
      : el("p", {}, entry.error ?? "Asking for the plan");
    const asked = new URLSearchParams(entry.link);
    const [machine, model] = entry.plan
      ? [machineText(entry.plan.machine), `${entry.plan.model.name} ${entry.plan.model.precision}`]
      : [asked.get("device") ?? "this machine", asked.get("model") ?? asked.get("path") ?? ""];
    return el("div", { class: `side ${entry.plan ? outcome(entry.plan).kind : ""}` }, el("p", { class: "fine" }, title), el("h3", {}, machine), el("p", { class: "fine" }, model), inside, el("div", { class: "side-actions" }, ...actions));
  }

  #button(text, key, act) {
    const button = el("button", { type: "button", data: { key: `compare/${key}` } }, text);
    button.addEventListener("click", act);
    return button;
  }

  #otherDevice() {
    const select = el("select", { id: "compare-device", data: { key: "compare/device" } }, el("option", { value: "" }, "another device"),
      ...this.catalog.devices.map((device) => el("option", { value: device.id }, device.name)));
    select.addEventListener("change", () => {
      const options = new URLSearchParams(this.current.link);
      options.delete("this-machine");
      options.set("device", select.value);
      if (select.value) this.#pin(String(options), null);
    });
    return el("div", { class: "compare-add" }, el("label", { for: "compare-device" }, "Compare with"), select,
      this.#button("Pin this plan", "pin", () => this.#pin(this.current.link, this.current.plan)));
  }

  #draw() {
    if (!this.current) return;
    const cards = this.pins.map((pin, index) => this.#card(pin, `Pinned ${index + 1}`, [
      this.#button("Show", `show/${index}`, () => this.onTake([...new URLSearchParams(pin.link)])),
      this.#button("Remove", `remove/${index}`, () => { this.pins.splice(index, 1); this.onChange(); this.#draw(); }),
    ]));
    show(this.node, el("h2", {}, "Side by side"), this.#otherDevice(),
      this.pins.length > 0 ? el("div", { class: "sides" }, this.#card(this.current, "This plan", []), ...cards) : el("p", { class: "fine" }, `Pin a plan, change the choices, and see both; up to ${pinsMost} are kept, also in the link.`));
  }
}
