"use strict";
// Shows /graph.json. Everything that comes from the cluster goes into the page as text, never as
// markup. It asks while it is looked at, and not otherwise.

const EVERY = 2000, LONGEST = 30000, PATIENCE = 10000, COPIED = 2000;
const at = (id) => document.getElementById(id);
const narrow = () => matchMedia("(max-width: 719px)").matches;
let etag = null, graph = null, timer = null, failures = 0;
// What the clock of the process is ahead of ours, in milliseconds.
let ahead = 0;

function element(name, kind, ...content) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(...content);
  return made;
}

function shape(name, attributes, ...content) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

// === Asking

async function look() {
  timer = null;
  try {
    const answer = await fetch("graph.json", {
      headers: etag ? { "If-None-Match": etag } : {}, cache: "no-store", signal: AbortSignal.timeout(PATIENCE),
    });
    ahead = (Date.parse(answer.headers.get("Date")) || Date.now()) - Date.now();
    if (answer.status === 200) {
      graph = await answer.json();
      etag = answer.headers.get("ETag");
      draw();
    } else if (answer.status !== 304) {
      throw new Error("the answer was " + answer.status);
    }
    await lookAtDrawing();
    failures = 0;
    lost("");
    at("live").textContent = "live, " + new Date().toLocaleTimeString();
  } catch (error) {
    failures += 1;
    lost((graph ? "what is shown is old: " : "") + "the process cannot be reached (" + error.message + ")");
    at("live").textContent = "";
  }
  ages();
  if (!document.hidden) timer = setTimeout(look, Math.min(EVERY * 2 ** failures, LONGEST));
}

// Said aloud by a screen reader, so only where it changes.
function lost(text) {
  if (at("lost").textContent !== text) at("lost").textContent = text;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    clearTimeout(timer);
    timer = null;
  } else if (timer === null) {
    look();
  }
});

// === Ages

// `45s`, `2m5s`, `3h4m`, `2d3h`: the two largest units, as kubectl writes them.
function age(since) {
  const seconds = Math.max(0, Math.floor((Date.now() + ahead - since) / 1000));
  const [minutes, hours, days] = [60, 3600, 86400].map((unit) => Math.floor(seconds / unit));
  const two = (large, unit, small, below) => large + unit + (small ? small + below : "");
  if (days) return two(days, "d", hours % 24, "h");
  if (hours) return two(hours, "h", minutes % 60, "m");
  if (minutes) return two(minutes, "m", seconds % 60, "s");
  return seconds + "s";
}

function since(time, before) {
  if (!time) return element("span", "quiet", "");
  const made = element("time", "");
  made.dateTime = time;
  made.title = new Date(time).toLocaleString();
  if (before) made.dataset.before = before;
  return made;
}

function ages() {
  for (const one of document.querySelectorAll("time")) {
    const text = (one.dataset.before || "") + age(Date.parse(one.dateTime));
    if (one.textContent !== text) one.textContent = text;
  }
}

// === Drawing

function draw() {
  drawSummary();
  drawTrouble();
  drawPlans();
  drawGateways();
  at("paths-section").hidden = !graph.gateways.shown.some(({ kind }) => kind === "Gateway");
  drawInstances();
  drawVersions();
  drawCapabilities();
  ages();
}

// Nodes by what they were made from: what has not changed stays, with its focus and its selection.
const made = new Map();
function keep(key, data, make) {
  const source = JSON.stringify(data);
  let known = made.get(key);
  if (!known || known.source !== source) {
    const focused = known && known.node.contains(document.activeElement);
    known = { source, node: make(data) };
    if (focused) setTimeout(() => known.node.querySelector("button")?.focus());
    made.set(key, known);
  }
  known.round = round;
  return known.node;
}
let round = 0;

// Moves only what has to move, so that nothing jumps under a finger.
function put(parent, list) {
  list.forEach((node, place) => {
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] || null);
  });
  while (parent.children.length > list.length) parent.lastChild.remove();
}

function section(id, { total, shown }, make, empty) {
  round += 1;
  const rows = shown.map((row) => keep([id, row.kind, row.namespace, row.name].join("/"), row, make));
  for (const [key, known] of made) if (key.startsWith(id + "/") && known.round !== round) made.delete(key);
  if (rows.length) at(id + "-note").textContent = total > shown.length ? "and " + (total - shown.length) + " more" : "";
  else at(id + "-note").textContent = "";
  return rows.length ? rows : [nothing(id, empty)];
}

// What to do where a section is empty: texts, and commands to copy.
function nothing(id, texts) {
  const line = (text) => text.startsWith("$ ") ? command(text.slice(2), "Copy the command") : element("p", "", text);
  return keep(id + "/", texts, () => element("div", "empty quiet", ...texts.map(line)));
}

function command(text, label) {
  const code = element("code", "", text);
  const button = element("button", "", "Copy");
  button.type = "button";
  button.setAttribute("aria-label", label);
  button.addEventListener("click", () => copy(button, code));
  return element("div", "command", code, button);
}

// Where the clipboard cannot be written the text is selected, to be copied by hand.
async function copy(button, code) {
  let done = "Copied";
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code);
    done = "Selected";
  }
  button.textContent = done;
  at("said").textContent = done === "Copied" ? "Copied." : "The clipboard is not accessible; the command is selected.";
  setTimeout(() => { button.textContent = "Copy"; }, COPIED);
}

function title({ namespace, name, kind }) {
  const full = element("bdi", "name", (namespace ? namespace + "/" : "") + name);
  return kind ? element("span", "", element("span", "quiet", kind + " "), full) : full;
}

function table(id, columns, rows) {
  if (!rows[0].matches("tr")) return put(at(id), rows);
  let body = at(id).querySelector("tbody");
  if (!body) {
    const head = element("tr", "");
    head.setAttribute("role", "row");
    for (const [text, kind] of columns) {
      const cell = element("th", kind, text);
      cell.scope = "col";
      cell.setAttribute("role", "columnheader");
      head.append(cell);
    }
    body = element("tbody", "");
    const whole = element("table", "", element("thead", "", head), body);
    whole.setAttribute("role", "table");
    whole.setAttribute("aria-labelledby", id + "-title");
    at(id).replaceChildren(whole);
  }
  put(body, rows);
}

// A row; a cell that is a pair has its name, which a phone shows beside it.
function row(...cells) {
  const made = element("tr", "");
  made.setAttribute("role", "row");
  for (const [content, label, kind] of cells) {
    const cell = element("td", (kind || "") + (content === "" ? " blank" : ""), content);
    cell.setAttribute("role", "cell");
    if (label) cell.dataset.label = label;
    made.append(cell);
  }
  return made;
}

// === Instances

const STEP = { COMPLETE: "good", IN_PROGRESS: "busy", PENDING: "quiet", ERROR: "bad", FATAL_ERROR: "bad" };
// Cards by Instance: what they were made from, and whether somebody opened them.
const cards = new Map();

function standing(instance) {
  const { plan, trouble } = instance;
  const colour = trouble === "waiting" || trouble === "not ready" ? "wait" : "bad";
  if (plan) return [plan.name + " " + plan.status + (trouble ? ", " + trouble : ""), trouble ? colour : "busy"];
  if (trouble) return [trouble, colour];
  return instance.well ? ["at rest", "good"] : ["not ready", "wait"];
}

function drawInstances() {
  const wanted = at("filter").value.trim().toLowerCase();
  const shown = graph.instances.filter((instance) => text(instance).includes(wanted));
  const bounded = graph.instances.length < graph.total ? "the first " + graph.instances.length + " of " + graph.total + ", those with work first" : "";
  const filtered = wanted ? shown.length + " match" : "";
  at("count").textContent = [filtered, bounded].filter(Boolean).join("; ");
  const used = new Set();
  const list = shown.map((instance) => {
    const key = instance.namespace + "/" + instance.name;
    used.add(key);
    return card(key, instance);
  });
  for (const key of cards.keys()) if (!used.has(key) && !wanted) cards.delete(key);
  if (!graph.total) list.push(nothing("instances", ["No Instance is known. Install a package:", "$ interlock package install FOLDER --instance NAME"]));
  at("instances").className = graph.total ? "" : "bare";
  put(at("instances"), list);
}

function text(instance) {
  const { namespace, name, version } = instance;
  return [namespace + "/" + name, version, standing(instance)[0]].join(" ").toLowerCase();
}

function card(key, instance) {
  const source = JSON.stringify(instance);
  let known = cards.get(key);
  if (!known) {
    known = { box: element("details"), head: element("summary"), body: element("div", "body") };
    known.box.append(known.head, known.body);
    known.box.addEventListener("toggle", () => fill(known));
    cards.set(key, known);
  }
  if (known.source !== source) {
    Object.assign(known, { source, instance, filled: false });
    const [words, colour] = standing(instance);
    known.head.replaceChildren(element("div", "columns",
      title({ ...instance, kind: "" }), element("bdi", "quiet second", instance.version || "no OperatorVersion"),
      element("span", "third", element("span", "state " + colour, words)), element("span", "quiet end", since(instance.created))));
  }
  fill(known);
  return known.box;
}

function fill(known) {
  if (known.filled || !known.box.open) return;
  known.filled = true;
  const { instance, body } = known;
  const steps = (instance.plan ? instance.plan.steps : []).map((step) =>
    element("li", "",
      element("bdi", "", step.phase + " / " + step.name), " ",
      element("span", STEP[step.status] || "quiet", step.status),
      element("bdi", "", step.message ? ": " + step.message : "")));
  body.replaceChildren(element("ul", "steps", ...steps));
  if (instance.nodes.length) body.append(picture(instance));
  if (instance.more) body.append(element("p", "quiet", "and " + instance.more + " objects more"));
}

// === Beginning

// The filter is part of the address, so that a page can be pointed to.
const fromAddress = () => {
  try {
    at("filter").value = decodeURIComponent(location.hash.slice(1));
  } catch {
    at("filter").value = location.hash.slice(1);
  }
  if (graph) { drawInstances(); ages(); }
};
addEventListener("hashchange", fromAddress);
at("filter").addEventListener("input", () => {
  history.replaceState(null, "", "#" + encodeURIComponent(at("filter").value));
  if (graph) { drawInstances(); ages(); }
});
fromAddress();
at("paths-picture").addEventListener("keydown", press);
at("paths").addEventListener("toggle", () => {
  if (!at("paths").open) return;
  clearTimeout(timer);
  look();
});
let width = 0;
new ResizeObserver(() => {
  if (at("instances").clientWidth === width) return;
  width = at("instances").clientWidth;
  for (const known of cards.values()) {
    known.filled = false;
    fill(known);
  }
}).observe(at("instances"));
look();
