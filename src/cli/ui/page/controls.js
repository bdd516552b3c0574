// The choices: one control for each option of a plan, in groups; what they hold as options, and errors at the one that is meant.
import { count, el, sizeText } from "./text.js";

const here = "this-machine", file = "path";
const powers = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => 2 ** (from + i));
const tokens = powers(10, 20);
const cacheSizes = ["64MiB", "128MiB", "256MiB", "512MiB", "1GiB", "2GiB", "4GiB", "8GiB", "16GiB", "32GiB"];

// `stops`: of a slider beside the text. What is not here, of the catalog's options, is put under "More".
const groups = [
  { title: "Model", isOpen: true, fields: [
    { name: "model", label: "Model", kind: "choice", isWide: true },
    { name: file, label: "Checkpoint's path on this machine", kind: "text", isWide: true, hint: "a GGUF file, a safetensors file, or a folder; its headers are read" },
    { name: "precision", label: "Precision", kind: "choice", isWide: true },
  ] },
  { title: "Machine", isOpen: true, fields: [
    { name: "device", label: "Device", kind: "choice", isWide: true },
    { name: "devices", label: "Devices", kind: "number", stops: [1, 2, 3, 4, 6, 8, 16, 32] },
    { name: "nodes", label: "Nodes", kind: "number", stops: [1, 2, 3, 4, 8, 16] },
  ] },
  { title: "Load", isOpen: true, fields: [
    { name: "context", label: "Context", kind: "number", stops: tokens },
    { name: "concurrency", label: "Sequences", kind: "number", stops: powers(0, 8), hint: "at a time" },
    { name: "kv", label: "KV type", kind: "choice", values: ["auto", "f16", "bf16", "fp8", "q8_0"] },
    { name: "state", label: "State type", kind: "choice", values: ["auto", "f32", "bf16"] },
    { name: "chunk", label: "Prompt chunk", kind: "number", stops: powers(7, 14), hint: "tokens computed together" },
    { name: "speculate", label: "Drafted tokens", kind: "number", stops: [0, 1, 2, 3, 4, 5, 6, 7, 8], hint: "at each step" },
  ] },
  { title: "Table and memory", isOpen: true, fields: [
    { name: "placement", label: "Where the table goes", kind: "radio", isWide: true, values: ["auto", "device", "pinned", "host", "nvme", "remote"] },
    { name: "memory", label: "Table's cache", kind: "size", stops: cacheSizes, isWide: true },
    { name: "host-reserve", label: "Host reserve", kind: "size" },
    { name: "memory-fraction", label: "Memory fraction", kind: "text", hint: "0 to 1" },
    { name: "engine", label: "Engine", kind: "choice", isWide: true, values: ["auto", "llama_cpp", "vllm", "sglang"], texts: { llama_cpp: "llama.cpp", vllm: "vLLM", sglang: "SGLang" } },
  ] },
  { title: "Targets and price", isOpen: true, fields: [
    { name: "target-ttft-ms", label: "First token within, ms", kind: "number" },
    { name: "target-tok-s", label: "Tokens a second", kind: "number" },
    { name: "price-per-hour", label: "Price per hour, all devices", kind: "text", isWide: true, hint: "in any currency, for the cost of a million tokens" },
  ] },
];
const moreTitles = { model: "model", machine: "machine", load: "load", memory: "memory", targets: "targets" };

/** What a person typed, as options take it. */
const cleaned = (field, text) => field.kind === "number" ? text.trim().replace(/(?<=\d)[ ,_](?=\d{3})/g, "") : text.trim();

export class Controls {
  /** `onChange(isTyping)` is called after each change by a person. */
  constructor(form, catalog, onChange) {
    this.form = form;
    this.catalog = catalog;
    this.onChange = onChange;
    this.fields = new Map();
    this.nodes = new Map();  // name -> {field, row, input, slider, effective, error}
    const isPhone = matchMedia("(max-width: 60rem)").matches;
    form.replaceChildren(...groups.map((group, index) => this.#group(group.title, group.fields, isPhone ? index < 2 : group.isOpen)), this.#more());
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  get names() { return [...this.nodes.keys()]; }

  /** The options that differ from what would be chosen anyway, in the order of the page. */
  options() {
    const options = [];
    for (const [name, { field }] of this.nodes) {
      const value = cleaned(field, this.#read(name));
      if (name === "model" && value === file) continue;
      if (name === file && this.#read("model") !== file) continue;
      if (name === "precision" && this.#read("model") === file) continue;
      if (name === "device" && value === here) options.push([here, "1"]);
      else if (value !== "" && value !== "auto") options.push([name, value]);
    }
    return options;
  }

  /** Shows these options and nothing else; a person's choices alone, so unknown names are given back. */
  setOptions(options) {
    for (const name of this.nodes.keys()) this.#write(name, "");
    const given = new Map(options);
    this.#write("model", given.has(file) ? file : given.get("model") ?? this.catalog.models[0]?.name ?? file);
    this.#showPrecisions(given.get("precision"));
    this.#write("device", given.has(here) ? here : given.get("device") ?? this.#usualDevice());
    const unknown = [];
    for (const [name, value] of options) {
      if (["model", "precision", "device", here].includes(name)) continue;
      if (this.nodes.has(name)) this.#write(name, value);
      else unknown.push(name);
    }
    for (const { row, field } of this.nodes.values()) {
      if (given.has(field.name)) row.closest("details").open = true;
    }
    this.#showPath();
    return unknown;
  }

  /** Sets one option, as if a person had. */
  set(name, value) {
    this.#write(name, value);
    this.onChange(false);
  }

  /** Beside each control that was left alone: what the plan takes for it. */
  showEffective(plan) {
    const { load, machine, table, targets } = plan;
    const effective = {
      devices: machine.devices, nodes: machine.nodes, tp: machine.tp, ep: machine.ep, dp: machine.dp,
      context: load.context, concurrency: load.concurrency, kv: load.kv, state: load.state, chunk: load.chunk,
      speculate: load.speculate, prompt: load.prompt, output: load.output, placement: table?.placement,
      engine: plan.engine, "target-ttft-ms": targets.ttft_ms, "target-tok-s": targets.tok_s,
      memory: table?.cache_bytes ? sizeOption(table.cache_bytes) : undefined,
      "host-reserve": reserveOf(plan),
    };
    for (const [name, node] of this.nodes) {
      node.automatic = effective[name] === undefined ? "" : typeof effective[name] === "number" ? count(effective[name]) : effective[name];
      this.#showAutomatic(node);
    }
    const most = plan.model.context_most, context = this.nodes.get("context");
    context.hint.textContent = most ? `tokens; at most ${count(most)} here` : "";
  }

  /** A control that was left alone shows what the plan takes for it; one that was not, a way back. */
  #showAutomatic(node) {
    const isLeft = this.#read(node.field.name) === "";
    node.toAutomatic.hidden = isLeft || ["model", file, "precision", "device"].includes(node.field.name);
    if (node.select || node.field.kind === "radio") {
      node.effective.textContent = isLeft ? String(node.automatic) : "";
      return;
    }
    node.effective.textContent = isLeft && node.automatic !== "" ? "auto" : "";
    const input = node.inputs[0];
    if (!isLeft || document.activeElement === input) return;
    node.isAutomatic = node.automatic !== "";
    input.value = node.automatic;
    input.classList.toggle("automatic", node.isAutomatic);
    if (node.slider && node.isAutomatic) this.#place(node, cleaned(node.field, String(node.automatic)));
  }

  /** The control that a message means: by its option's name, or by what stands in it. */
  #meant(message) {
    const usesFile = this.#read("model") === file;
    const named = [...message.matchAll(/--([a-z][a-z-]*)/g)].map((match) => match[1] === here ? "device" : match[1] === "model" && usesFile ? file : match[1]);
    const byName = named.find((name) => this.nodes.has(name));
    if (byName) return byName;
    const quoted = [...message.matchAll(/'([^']*)'/g)].map((match) => match[1]);
    return [...this.nodes.keys()].find((name) => this.#read(name) !== "" && quoted.includes(this.#read(name))) ?? (usesFile ? file : null);
  }

  /** At the control that the message means; false if there is none. */
  showError(message) {
    this.clearErrors();
    const name = this.#meant(message);
    if (!name) return false;
    const node = this.nodes.get(name);
    node.error.textContent = message.replace(/^--[a-z-]+ \S+: /, "");
    node.error.hidden = false;
    node.row.classList.add("wrong");
    for (const input of node.inputs) input.setAttribute("aria-invalid", "true");
    node.row.closest("details").open = true;
    return true;
  }

  clearErrors() {
    for (const node of this.nodes.values()) {
      if (node.error.hidden) continue;
      node.error.hidden = true;
      node.error.textContent = "";
      node.row.classList.remove("wrong");
      for (const input of node.inputs) input.removeAttribute("aria-invalid");
    }
  }

  #usualDevice() {
    const devices = this.catalog.devices;
    return (devices.find((device) => device.id === "dgx-spark") ?? devices[0])?.id ?? here;
  }

  #group(title, fields, isOpen) {
    return el("details", { class: "group", open: isOpen }, el("summary", {}, el("h2", {}, title)),
      el("div", { class: "fields" }, ...fields.map((field) => this.#field(field))));
  }

  #more() {
    const known = new Set(groups.flatMap((group) => group.fields.map((field) => field.name)).concat(here));
    const rest = this.catalog.options.filter((option) => !known.has(option.name));
    const sections = [...new Set(rest.map((option) => option.group))].map((group) => el("fieldset", { class: "fields" },
      el("legend", {}, `Of the ${moreTitles[group] ?? group}`),
      ...rest.filter((option) => option.group === group).map((option) => this.#field({
        name: option.name, label: option.name, hint: option.help, kind: { N: "number", SIZE: "size" }[option.value_name] ?? "text", isWide: true, isOption: true }))));
    return el("details", { class: "group" }, el("summary", {}, el("h2", {}, "More")), ...sections);
  }

  #field(field) {
    const id = `option-${field.name}`;
    const node = { field, automatic: "", isAutomatic: false, effective: el("span", { class: "effective" }),
      toAutomatic: el("button", { type: "button", class: "to-automatic", tabIndex: -1, hidden: true, "aria-label": `${field.label}: back to auto`, title: "back to auto; clearing it does the same" }, "auto"), error: el("p", { class: "field-error", id: `${id}-error`, hidden: true }),
      hint: el("p", { class: "hint", id: `${id}-hint` }, field.hint ?? this.#helpOf(field)) };
    const described = `${id}-hint ${id}-error`;
    if (field.kind === "radio") this.#radio(node, id, described);
    else if (field.kind === "choice") this.#choice(node, id, described);
    else this.#entry(node, id, described);
    node.toAutomatic.addEventListener("click", () => this.set(field.name, ""));
    this.nodes.set(field.name, node);
    return node.row;
  }

  #helpOf(field) {
    if (field.kind !== "size") return "";
    return this.catalog.options.find((option) => option.name === field.name)?.help ?? "as in 4GiB or 4GB";
  }

  #row(node, id, ...controls) {
    const label = node.field.isOption ? el("code", {}, node.field.label) : node.field.label;
    const head = el("div", { class: "field-head" }, el("label", { for: id }, label), node.effective, node.toAutomatic);
    return el("div", { class: `field${node.field.isWide ? " wide" : ""}` }, head, ...controls, node.hint, node.error);
  }

  #choice(node, id, described) {
    const select = el("select", { id, "aria-describedby": described });
    node.inputs = [select];
    node.select = select;
    const { name, values, texts } = node.field;
    if (values) select.append(...values.map((value) => el("option", { value: value === "auto" ? "" : value }, texts?.[value] ?? value)));
    if (name === "model") {
      select.append(...this.catalog.models.map((model) => el("option", { value: model.name }, model.name)));
      if (this.catalog.paths) select.append(el("option", { value: file }, "A checkpoint on this machine"));
    }
    if (name === "device") this.#devices(select);
    select.addEventListener("change", () => {
      if (name === "model") {
        this.#showPrecisions();
        this.#showPath();
        if (select.value === file && this.#read(file).trim() === "") {
          this.nodes.get(file).inputs[0].focus();
          return;  // nothing to plan yet
        }
      }
      this.onChange(false);
    });
    node.row = this.#row(node, id, select);
  }

  #devices(select) {
    const of = (isUnified) => this.catalog.devices.filter((device) => device.is_unified === isUnified)
      .map((device) => el("option", { value: device.id }, `${device.name}, ${device.sold_as}`));
    select.append(el("optgroup", { label: "Memory of their own" }, ...of(false)), el("optgroup", { label: "One memory for CPU and GPU" }, ...of(true)));
    const machine = this.catalog.this_machine;
    if (machine !== null) select.append(el("option", { value: here }, machine ? `This machine: ${machine.name}` : "This machine"));
  }

  #radio(node, id, described) {
    const { name, label, values } = node.field;
    node.inputs = values.map((value) => el("input", { type: "radio", name, value: value === "auto" ? "" : value, id: `${id}-${value}`, checked: value === "auto" }));
    const set = el("div", { class: "segments" }, ...node.inputs.map((input, i) => el("label", { class: "choice" }, input, el("span", {}, values[i]))));
    set.addEventListener("change", () => this.onChange(false));
    node.row = el("fieldset", { class: "field wide", "aria-describedby": described },
      el("legend", { class: "field-head" }, el("span", {}, label), node.effective, node.toAutomatic), set, node.hint, node.error);
  }

  #entry(node, id, described) {
    const { field } = node;
    const input = el("input", { type: "text", id, "aria-describedby": described, spellcheck: false, inputMode: field.kind === "number" ? "decimal" : "text" });
    node.inputs = [input];
    input.addEventListener("input", () => {
      this.#isOwn(node);
      if (node.slider) this.#place(node, cleaned(field, input.value));
      this.onChange(true);
    });
    input.addEventListener("focus", () => { if (node.isAutomatic) input.select(); });
    input.addEventListener("blur", () => this.#showAutomatic(node));
    if (field.kind === "number") input.addEventListener("keydown", (event) => this.#step(event, node));
    const controls = [input];
    if (field.stops) {
      node.slider = el("input", { type: "range", min: 0, max: field.stops.length - 1, step: 1, value: 0, "aria-label": `${field.label}, slider`, tabIndex: -1 });
      node.slider.addEventListener("input", () => {
        const stop = field.stops[Number(node.slider.value)];
        this.#isOwn(node);
        input.value = typeof stop === "number" ? count(stop) : stop;
        node.slider.setAttribute("aria-valuetext", String(stop));
        this.onChange(true);
      });
      controls.push(node.slider);
    }
    node.row = this.#row(node, id, ...controls);
  }

  /** Up and down walk along the stops, or by one. */
  #step(event, node) {
    const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    const { stops } = node.field, input = node.inputs[0];
    const now = Number(cleaned(node.field, input.value));
    let next = now + direction;
    if (stops) next = direction > 0 ? stops.find((stop) => stop > now) ?? now : stops.findLast((stop) => stop < now) ?? now;
    if (!Number.isFinite(next) || next < 0) return;
    input.value = count(next);
    input.dispatchEvent(new Event("input"));
  }

  /** What it shows is a person's from now on. */
  #isOwn(node) {
    node.isAutomatic = false;
    node.inputs[0].classList.remove("automatic");
  }

  #place(node, text) {
    const stops = node.field.stops;
    const value = typeof stops[0] === "number" ? Number(text.replaceAll(",", "")) : bytesOf(text);
    if (!Number.isFinite(value)) return;
    const distance = (stop) => Math.abs(Math.log2(1 + (typeof stop === "number" ? stop : bytesOf(stop))) - Math.log2(1 + value));
    const nearest = stops.reduce((best, stop, i) => distance(stop) < distance(stops[best]) ? i : best, 0);
    node.slider.value = nearest;
    node.slider.setAttribute("aria-valuetext", text);
  }

  #read(name) {
    const node = this.nodes.get(name);
    if (!node) return "";
    if (node.field.kind === "radio") return node.inputs.find((input) => input.checked)?.value ?? "";
    return node.isAutomatic ? "" : node.inputs[0].value;
  }

  #write(name, value) {
    const node = this.nodes.get(name);
    const text = value === "auto" ? "" : value ?? "";
    if (node.field.kind === "radio") {
      for (const input of node.inputs) input.checked = input.value === text;
    } else {
      if (node.select && ![...node.select.options].some((option) => option.value === text)) {
        node.select.append(el("option", { value: text }, text));  // the program says what is wrong with it
      }
      this.#isOwn(node);
      node.inputs[0].value = node.field.kind === "number" && /^\d+$/.test(text) ? count(Number(text)) : text;
      if (node.slider && text !== "") this.#place(node, cleaned(node.field, text));
    }
  }

  #showPrecisions(wanted) {
    const select = this.nodes.get("precision").select;
    const model = this.catalog.models.find((each) => each.name === this.#read("model"));
    const before = wanted ?? select.value;
    select.replaceChildren(...(model?.precisions ?? []).map((precision) => el("option", { value: precision }, precision)));
    if (wanted && !model?.precisions.includes(wanted)) select.append(el("option", { value: wanted }, wanted));
    if ([...select.options].some((option) => option.value === before)) select.value = before;
    this.nodes.get("model").hint.textContent = model?.summary ?? "";
  }

  #showPath() {
    const isFile = this.#read("model") === file;
    this.nodes.get(file).row.hidden = !isFile;
    this.nodes.get("precision").row.hidden = isFile;
  }
}

/** "4GiB" in bytes; not a number for what is no size. */
function bytesOf(text) {
  const match = /^([\d.]+)\s*([KMGT])?(i?)B?$/i.exec(text.trim());
  if (!match) return NaN;
  const power = " KMGT".indexOf((match[2] ?? " ").toUpperCase());
  return Number(match[1]) * (match[3] || !/b$/i.test(text) ? 1024 : 1000) ** power;
}

/** As an option takes it: "22GiB". */
const sizeOption = (bytes) => sizeText(bytes).replace(/(\.\d*?)0+(?=\s)/, "$1").replace(/\.?\s/, "");

function reserveOf(plan) {
  const item = plan.pools.flatMap((pool) => pool.items).find((each) => /reserve/.test(each.name));
  return item ? sizeOption(item.bytes) : undefined;
}
