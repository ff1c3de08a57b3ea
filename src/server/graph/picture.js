"use strict";
// The picture of an Instance: parents above children, rows as wide as the page.

const BOX = { height: 48, word: 18, least: 150, gap: 10, between: 34, letter: 8.2 };

function picture(instance) {
  const [words, state] = standing(instance);
  const { nodes, edges } = gathered(instance);
  for (const node of nodes) if (node.itself) Object.assign(node, { words, state });
  const layer = layers(nodes.length, edges);
  const width = Math.max(280, at("instances").clientWidth - (narrow() ? 26 : 46));
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
