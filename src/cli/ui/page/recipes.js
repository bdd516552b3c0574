// What to type: one tab an engine, by click or by arrow keys.
import { copy, el } from "./text.js";

const engineNames = { llama_cpp: "llama.cpp", vllm: "vLLM", sglang: "SGLang" };

function limits(recipe) {
  return el("div", { class: "refusal" }, el("p", {}, el("strong", {}, "This engine cannot run the plan:")),
    el("ul", {}, ...recipe.limits.map((limit) => el("li", {}, limit.reason, el("span", { class: "source" }, `Source: ${limit.source}`)))));
}

function panel(key, recipe, announce) {
  const parts = [];
  if (recipe.runs) {
    const button = el("button", { type: "button", class: "copy", data: { key: `recipe/${key}/copy` } }, "Copy");
    button.addEventListener("click", () => copy(recipe.text, button, announce));
    parts.push(el("div", { class: "command" }, el("pre", { tabIndex: 0, "aria-label": `command for ${engineNames[key] ?? key}` }, el("code", {}, recipe.text)), button));
  } else {
    parts.push(limits(recipe));
  }
  if (recipe.notes.length > 0) parts.push(el("ul", { class: "notes" }, ...recipe.notes.map((note) => el("li", {}, note))));
  return parts;
}

let chosen = null;  // stays when plans change

/** `engine`: the name of the one that the plan is for, shown first unless a person chose another. */
export function recipeTabs(recipes, engine, announce) {
  const keys = Object.keys(recipes);
  if (keys.length === 0) return el("p", {}, "There is no recipe for this plan.");
  const planned = keys.find((key) => engineNames[key] === engine) ?? keys[0];
  const tabs = keys.map((key) => el("button", { type: "button", id: `tab-${key}`, class: "tab", role: "tab", "aria-controls": `panel-${key}`, data: { key: `recipe/${key}` } },
    engineNames[key] ?? key, el("span", { class: "tab-state" }, recipes[key].runs ? "" : " cannot run it")));
  const panels = keys.map((key) => el("div", { id: `panel-${key}`, role: "tabpanel", "aria-labelledby": `tab-${key}`, class: "panel" }, ...panel(key, recipes[key], announce)));
  const select = (index) => {
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === index);
      tab.tabIndex = i === index ? 0 : -1;
      panels[i].hidden = i !== index;
    });
  };
  const choose = (index) => { chosen = keys[index]; select(index); };
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => choose(index));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = (to + tabs.length) % tabs.length;
      choose(next);
      tabs[next].focus();
    });
  });
  select(Math.max(0, keys.indexOf(chosen ?? planned)));
  return el("div", { class: "recipes" }, el("div", { role: "tablist", "aria-label": "Engines", class: "tabs" }, ...tabs), ...panels);
}
