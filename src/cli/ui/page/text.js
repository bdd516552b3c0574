// How unbrokengs are written: elements, sizes, numbers, times.

/** An element: `properties` are its own, except `class`, `data` (an object), and names with a dash or "role", which are attributes. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const svgSpace = "http://www.w3.org/2000/svg";
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(svgSpace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const unbroken = "\u00a0";  // between a number and its unit: they stay on one line

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
export const count = (number) => whole.format(number);

/** Three or so digits: 0.42, 4.2, 27.8, 128, 1,240. */
export function figure(number) {
  const size = Math.abs(number);
  const digits = size === 0 || size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return new Intl.NumberFormat("en-US", { maximumFractionDigits: digits }).format(number);
}

export function sizeText(bytes) {
  const units = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
  for (const [unit, name] of units) {
    if (bytes < unit * (name === "TiB" ? 10 : 1)) continue;
    const amount = bytes / unit;
    const digits = amount >= 1000 ? 0 : amount >= 10 ? 1 : 2;
    return `${new Intl.NumberFormat("en-US", { minimumFractionDigits: name === "GiB" ? digits : 0, maximumFractionDigits: digits }).format(amount)}${unbroken}${name}`;
  }
  return `${figure(bytes)}${unbroken}B`;
}

/** The same in powers of ten, and to the byte. */
export function decimalText(bytes) {
  const units = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const exact = `${count(bytes)} bytes`;
  for (const [unit, name] of units) {
    if (bytes >= unit) return `${figure(bytes / unit)} ${name}, ${exact}`;
  }
  return exact;
}

/** A size that tells GB when it is pointed at. */
export const size = (bytes) => el("span", { class: "size", title: decimalText(bytes) }, sizeText(bytes));

export function percent(share) {
  const digits = share === 0 || share >= 0.1 ? 0 : share >= 0.01 ? 1 : 2;
  return share > 0 && share < 0.0001 ? `<0.01${unbroken}%` : `${(share * 100).toFixed(digits)}${unbroken}%`;
}

export function timeText(ms) {
  if (ms >= 10_000) return `${figure(ms / 1000)}${unbroken}s`;
  if (ms >= 1000) return `${count(ms)}${unbroken}ms`;
  if (ms >= 1 || ms === 0) return `${figure(ms)}${unbroken}ms`;
  return `${figure(ms * 1000)}${unbroken}us`;
}

/** How a plan ends, for its colour, sign and head: it fits and runs, it fits and no engine runs it, it does not fit. */
export function outcome(plan) {
  if (!plan.fits) return { kind: "bad", sign: "✕", words: `Does not fit: ${sizeText(plan.missing_bytes)} short` };
  const someEngineRuns = Object.values(plan.recipes).some((recipe) => recipe.runs);
  if (!plan.runs) return { kind: "warn", sign: "!", words: someEngineRuns ? `Fits, but ${plan.engine} cannot run it` : "Fits, but no engine runs it" };
  return { kind: "good", sign: "✓", words: "Fits" };
}

export const placementNames = {
  device: "on the device",
  pinned: "pinned host memory",
  host: "host memory",
  nvme: "NVMe",
  remote: "another machine's memory",
};
export const placementText = (placement) => placementNames[placement] ?? placement;

/** Replaces what `container` shows, and keeps what a person had opened there and where they were. */
export function show(container, ...nodes) {
  const open = new Map([...container.querySelectorAll("details[data-key]")].map((node) => [node.dataset.key, node.open]));
  const active = container.contains(document.activeElement) ? document.activeElement.closest("[data-key]")?.dataset.key : null;
  container.replaceChildren(...nodes.filter((node) => node));
  for (const node of container.querySelectorAll("details[data-key]")) {
    if (open.has(node.dataset.key)) node.open = open.get(node.dataset.key);
  }
  if (!active) return;
  const again = [...container.querySelectorAll("[data-key]")].find((node) => node.dataset.key === active);
  (again?.matches("details") ? again.querySelector("summary") : again)?.focus({ preventScroll: true });
}

/** Puts text on the clipboard, and says so on the button for two seconds. */
export async function copy(text, button, announce) {
  const said = button.textContent;
  let done = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    done = "The browser refused";
  }
  button.textContent = done;
  announce(done);
  setTimeout(() => { button.textContent = said; }, 2000);
}
