"use strict";
// Draws /graph.json. Everything that comes from the cluster goes into the page as text, never as
// markup. It asks while it is looked at, and not otherwise.

const EVERY = 2000, LONGEST = 30000, PATIENCE = 10000, OPEN_BY_ITSELF = 5;
const at = (id) => document.getElementById(id);
let etag = null, graph = null, timer = null, failures = 0;
// Cards by Instance: what they were made from, and whether somebody opened or closed them.
const cards = new Map();

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
    if (answer.status === 200) {
      graph = await answer.json();
      etag = answer.headers.get("ETag");
      draw();
    } else if (answer.status !== 304) {
      throw new Error("the answer was " + answer.status);
    }
    failures = 0;
    say("live, " + new Date().toLocaleTimeString(), false);
  } catch (error) {
    failures += 1;
    say((graph ? "what is shown is old: " : "") + "the process cannot be reached (" + error.message + ")", true);
  }
  if (!document.hidden) timer = setTimeout(look, Math.min(EVERY * 2 ** failures, LONGEST));
}

function say(text, lost) {
  at("live").textContent = text;
  at("live").className = lost ? "lost" : "";
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    clearTimeout(timer);
    timer = null;
  } else if (timer === null) {
    look();
  }
});

// === Words and their colours

const CAPABILITY = { Running: "good", Starting: "busy", Draining: "busy", Waiting: "wait", Disabled: "quiet" };
const STEP = { COMPLETE: "good", IN_PROGRESS: "busy", PENDING: "busy", ERROR: "bad", FATAL_ERROR: "bad" };

function standing(instance) {
  const { plan, trouble } = instance;
  if (plan && trouble.length) return [plan.name + " " + plan.status + ", " + trouble[0].type, "bad"];
  if (plan) return [plan.name + " " + plan.status, STEP[plan.status] || "busy"];
  if (trouble.length) return [trouble[0].type + ": " + trouble[0].reason, "bad"];
  return instance.well ? ["at rest", "good"] : ["not ready", "wait"];
}

// === Drawing

function draw() {
  at("capabilities").replaceChildren(...graph.capabilities.map(capability));
  const wanted = at("filter").value.trim().toLowerCase();
  const shown = graph.instances.filter((instance) => text(instance).includes(wanted));
  const running = graph.running === 1 ? "1 plan running" : graph.running + " plans running";
  const part = graph.instances.length < graph.total
    ? "; the page holds " + graph.instances.length + " of them, those with work first" : "";
  const filtered = wanted ? "; " + shown.length + " match" : "";
  at("count").textContent = graph.total + (graph.total === 1 ? " Instance, " : " Instances, ") + running + part + filtered;
  const used = new Set();
  let open = 0;
  const list = shown.map((instance) => {
    const key = instance.namespace + "/" + instance.name;
    used.add(key);
    const busy = Boolean(instance.plan || instance.trouble.length);
    return card(key, instance, busy && open++ < OPEN_BY_ITSELF);
  });
  for (const key of cards.keys()) if (!used.has(key) && !wanted) cards.delete(key);
  put(at("instances"), list);
}

// Moves only what has to move, so that nothing jumps under a finger.
function put(parent, list) {
  list.forEach((node, place) => {
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] || null);
  });
  while (parent.children.length > list.length) parent.lastChild.remove();
}

function text(instance) {
  const { namespace, name, version } = instance;
  return [namespace + "/" + name, version, standing(instance)[0]].join(" ").toLowerCase();
}

function capability({ name, state, message, kinds }) {
  const head = element("div", "line", element("strong", "", name), element("span", "state " + (CAPABILITY[state] || "bad"), state));
  const made = element("li", "", head);
  if (message) made.append(element("p", "", message));
  const lacking = kinds.filter((kind) => kind.sight !== "synced").map((kind) => kind.name + " " + kind.sight);
  if (lacking.length) made.append(element("p", "", lacking.join(", ")));
  return made;
}

function card(key, instance, opened) {
  const source = JSON.stringify(instance);
  let known = cards.get(key);
  if (!known) {
    known = { box: element("details"), head: element("summary"), body: element("div"), chosen: null };
    known.box.append(known.head, known.body);
    known.head.addEventListener("click", () => { known.chosen = !known.box.open; });
    known.box.addEventListener("toggle", () => fill(known));
    cards.set(key, known);
  }
  known.box.open = known.chosen ?? opened;
  if (known.source !== source) {
    Object.assign(known, { source, instance, filled: false });
    const [words, colour] = standing(instance);
    known.head.replaceChildren(element("div", "line",
      element("span", "", element("strong", "", instance.name), " ", element("span", "quiet", instance.namespace)),
      element("span", "state " + colour, words)));
  }
  fill(known);
  return known.box;
}

function fill(known) {
  if (known.filled || !known.box.open) return;
  known.filled = true;
  const { instance, body } = known;
  const told = instance.plan ? instance.plan.steps : [];
  const steps = told.map((step) =>
    element("li", "",
      step.phase + " / " + step.name + " ",
      element("span", STEP[step.status] || "quiet", step.status),
      step.message ? ": " + step.message : ""));
  const trouble = instance.trouble.map(({ type, reason, message }) => {
    const news = message && !told.some((step) => step.message === message);
    return element("li", "bad", type + " (" + reason + ")" + (news ? ": " + message : ""));
  });
  body.replaceChildren(
    element("p", "quiet", instance.version ? "OperatorVersion " + instance.version : "no OperatorVersion"),
    element("ul", "steps", ...steps, ...trouble));
  if (instance.nodes.length) body.append(picture(instance));
  if (instance.more) body.append(element("p", "quiet", "and " + instance.more + " objects more"));
}

// === The picture: parents above children, rows as wide as the page

const BOX = { height: 48, word: 18, least: 150, gap: 10, between: 34, letter: 8.2 };

function picture(instance) {
  const [words, state] = standing(instance);
  const { nodes, edges } = gathered(instance);
  for (const node of nodes) if (node.itself) Object.assign(node, { words, state });
  const layer = layers(nodes.length, edges);
  const width = Math.max(280, at("instances").clientWidth - 26);
  const columns = Math.max(1, Math.floor((width + BOX.gap) / (BOX.least + BOX.gap)));
  const rows = [];
  nodes.forEach((_, index) => (rows[layer[index]] ||= []).push(index));
  let top = 2;
  const place = [];
  for (const row of rows.filter(Boolean)) {
    const across = Math.min(columns, row.length);
    const size = Math.min(280, (width - BOX.gap * (across - 1) - 4) / across);
    const left = (width - size * across - BOX.gap * (across - 1)) / 2;
    const tall = BOX.height + (row.some((index) => word(nodes[index])) ? BOX.word : 0);
    row.forEach((index, number) => {
      const y = top + Math.floor(number / across) * (tall + BOX.gap);
      place[index] = { x: left + (number % across) * (size + BOX.gap), y, size, tall };
    });
    top += Math.ceil(row.length / across) * (tall + BOX.gap) - BOX.gap + BOX.between;
  }
  const height = top - BOX.between + 2;
  const lines = edges.map(([from, to]) => line(place[from], place[to]));
  const boxes = nodes.map((node, index) => box(node, place[index]));
  const label = "what " + instance.name + " depends on and what it made: " + nodes.map((node) => node.kind + " " + node.name).join(", ");
  return shape("svg", { width, height, role: "img", "aria-label": label }, ...lines, ...boxes);
}

// Many of a kind below the same parents are drawn as one.
function gathered({ nodes, edges }) {
  const parents = nodes.map((_, index) => edges.filter(([, to]) => to === index).map(([from]) => from).join());
  const leaf = nodes.map((_, index) => !edges.some(([from]) => from === index));
  const groups = new Map();
  nodes.forEach((node, index) => {
    const key = leaf[index] && !node.itself ? node.kind + " " + parents[index] : index;
    groups.set(key, [...(groups.get(key) || []), index]);
  });
  const drawn = [], number = [];
  for (const members of groups.values()) {
    const sets = members.length > 4 ? [members] : members.map((member) => [member]);
    for (const set of sets) {
      set.forEach((index) => { number[index] = drawn.length; });
      drawn.push(set.length === 1 ? { ...nodes[set[0]] } : together(set.map((index) => nodes[index])));
    }
  }
  const seen = new Map(edges.map(([from, to]) => [number[from] + " " + number[to], [number[from], number[to]]]));
  return { nodes: drawn, edges: [...seen.values()] };
}

function together(nodes) {
  const good = nodes.filter((node) => colour(node) === "good").length;
  const name = nodes.length + " of them" + (good < nodes.length ? ", " + good + " well" : "");
  return { kind: nodes[0].kind, name, is: "present", healthy: good === nodes.length };
}

// The longest way from a node without parents; a circle ends where it closes.
function layers(count, edges) {
  const layer = new Array(count).fill(0);
  for (let round = 0, moved = true; moved && round < count; round++) {
    moved = false;
    for (const [from, to] of edges) {
      if (from !== to && layer[to] < layer[from] + 1) {
        layer[to] = layer[from] + 1;
        moved = true;
      }
    }
  }
  return layer;
}

function line(from, to) {
  const [x1, y1, x2, y2] = [from.x + from.size / 2, from.y + from.tall, to.x + to.size / 2, to.y];
  const middle = (y1 + y2) / 2;
  return shape("path", { d: `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}` });
}

function colour(node) {
  if (node.state) return node.state;
  if (node.is === "missing") return "bad";
  if (node.is !== "present") return "unknown";
  return node.healthy === false ? "wait" : "good";
}

function word(node) {
  if (node.words) return node.words;
  return node.is === "present" ? (node.healthy === false ? "not ready" : "") : node.is;
}

function box(node, { x, y, size, tall }) {
  const full = node.kind + " " + (node.namespace ? node.namespace + "/" : "") + node.name;
  const said = word(node);
  return shape("g", { class: colour(node) + (node.itself ? " itself" : ""), transform: `translate(${x} ${y})` },
    shape("title", {}, full + (said ? " (" + said + ")" : "")),
    shape("rect", { width: size, height: tall, rx: 6 }),
    shape("text", { x: 8, y: 20, class: "kind" }, fitted(node.kind, size)),
    shape("text", { x: 8, y: 38 }, fitted(node.name, size)),
    shape("text", { x: 8, y: 56, class: "word" }, fitted(said, size)));
}

// Both ends of a name tell more than its beginning alone.
function fitted(name, size) {
  const most = Math.floor((size - 16) / BOX.letter);
  if (name.length <= most) return name;
  const tail = Math.floor((most - 1) / 2);
  return name.slice(0, most - 1 - tail) + "…" + name.slice(-tail);
}

// === Beginning

// The filter is part of the address, so that a page can be pointed to.
const fromAddress = () => {
  try {
    at("filter").value = decodeURIComponent(location.hash.slice(1));
  } catch {
    at("filter").value = location.hash.slice(1);
  }
  if (graph) draw();
};
addEventListener("hashchange", fromAddress);
at("filter").addEventListener("input", () => {
  history.replaceState(null, "", "#" + encodeURIComponent(at("filter").value));
  if (graph) draw();
});
fromAddress();
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
