// The page: choices make a link, the link's options are asked for as a plan, the plan is shown.
import { Controls } from "./controls.js";
import { Comparison } from "./compare.js";
import { showPlan } from "./plan_view.js";
import { copy, el, figure, outcome, show, timeText } from "./text.js";

const results = document.getElementById("results");
const strip = document.getElementById("strip");
const announcement = document.getElementById("announcement");
const wait_ms = 180;  // after a keystroke

let controls, comparison;
let asked = null;  // the request that is under way
let timer = 0;

const announce = (text) => { announcement.textContent = text; };

export async function fetchPlan(options, signal) {
  const answer = await fetch(`/api/plan?${new URLSearchParams(options)}`, { signal, cache: "no-store" });
  const document = await answer.json();
  if (document.error) throw Object.assign(new Error(document.error.message), { isRefusal: true });
  return document;
}

function spoken(plan) {
  const { words } = outcome(plan);
  return plan.fits ? `${words}. About ${figure(plan.speed.decode_tok_s)} tokens a second, first token after ${timeText(plan.speed.ttft_ms)}.` : `${words}.`;
}

function showLink() {
  const query = new URLSearchParams([...controls.options(), ...comparison.links()]);
  history.replaceState(null, "", `${location.pathname}?${query}`);
}

function showFailure(error) {
  const isPlaced = error.isRefusal && controls.showError(error.message);
  const text = error.isRefusal ? error.message : "The program does not answer. Is `rowtide ui` still running?";
  results.classList.add("stale");
  for (const node of results.querySelectorAll(".banner, .waiting")) node.remove();
  results.prepend(el("p", { class: "banner", role: isPlaced ? undefined : "alert" }, el("strong", {}, "No plan: "), text));
  strip.className = "strip bad";
  strip.textContent = "No plan: see what is marked";
  announce(`No plan: ${text}`);
}

async function update() {
  asked?.abort();
  const mine = asked = new AbortController();
  const options = controls.options();
  showLink();
  results.setAttribute("aria-busy", "true");
  try {
    const plan = await fetchPlan(options, mine.signal);
    if (mine.signal.aborted) return;
    controls.clearErrors();
    controls.showEffective(plan);
    results.classList.remove("stale");
    comparison.setCurrent(options, plan);
    show(results, ...showPlan(plan, { announce, place: (placement) => controls.set("placement", placement), comparison: comparison.node }));
    strip.className = `strip ${outcome(plan).kind}`;
    strip.textContent = `${outcome(plan).sign} ${spoken(plan)}`;
    if (announcement.textContent !== spoken(plan)) announce(spoken(plan));
  } catch (error) {
    if (error.name !== "AbortError") showFailure(error);
  } finally {
    if (asked === mine) results.removeAttribute("aria-busy");
  }
}

function changed(isTyping) {
  clearTimeout(timer);
  timer = setTimeout(update, isTyping ? wait_ms : 0);
}

function readLink() {
  const given = [...new URLSearchParams(location.search)];
  const unknown = controls.setOptions(given.filter(([name]) => name !== "pin"));
  comparison.restore(given.filter(([name]) => name === "pin").map(([, link]) => link));
  if (unknown.length > 0) announce(`The link has options that this version does not know: ${unknown.join(", ")}`);
}

function themeButton() {
  const button = document.getElementById("theme");
  const names = { "": "system", light: "light", dark: "dark" };
  const say = () => {
    const name = names[document.documentElement.dataset.theme ?? ""];
    button.textContent = `Colours: ${name}`;
    button.setAttribute("aria-label", `Colours: ${name === "system" ? "as the system" : name}; press to change`);
  };
  button.addEventListener("click", () => {
    const next = { "": "light", light: "dark", dark: "" }[document.documentElement.dataset.theme ?? ""];
    if (next) document.documentElement.dataset.theme = next;
    else delete document.documentElement.dataset.theme;
    try {
      if (next) localStorage.setItem("rowtide-theme", next);
      else localStorage.removeItem("rowtide-theme");
    } catch { /* a browser that keeps nothing: the choice lasts as long as the page */ }
    say();
  });
  say();
}

async function start() {
  themeButton();
  let catalog;
  try {
    catalog = await (await fetch("/api/catalog")).json();
  } catch {
    show(results, el("p", { class: "banner", role: "alert" }, "The program does not answer. Is `rowtide ui` still running?"));
    return;
  }
  document.getElementById("version").textContent = `Rowtide ${catalog.version}.`;
  controls = new Controls(document.getElementById("controls"), catalog, changed);
  comparison = new Comparison({ catalog, fetchPlan, onChange: showLink, onTake: (options) => { controls.setOptions(options); update(); } });
  readLink();
  addEventListener("popstate", () => { readLink(); update(); });
  const link = document.getElementById("copy-link");
  link.addEventListener("click", () => copy(location.href, link, announce));
  document.getElementById("reset").addEventListener("click", () => { controls.setOptions([]); comparison.restore([]); update(); });
  update();
}

start();
