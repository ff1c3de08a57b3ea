"use strict";
// The graph of Gateways, routes and policies, from /graph.json?drawing. It is asked for while it is open.

let drawing = null, drawingTag = null, lit = null, here = 0;

async function lookAtDrawing() {
  if (!at("paths").open) return;
  const answer = await fetch("graph.json?drawing", {
    headers: drawingTag ? { "If-None-Match": drawingTag } : {}, cache: "no-store", signal: AbortSignal.timeout(PATIENCE),
  });
  if (answer.status !== 200) return;
  drawing = await answer.json();
  drawingTag = answer.headers.get("ETag");
  drawPaths();
}

const full = ({ kind, name }) => kind + " " + name;

function drawPaths() {
  const { nodes, edges, places, total } = drawing;
  at("paths-note").textContent = total > nodes.length ? "the first " + nodes.length + " of " + total : "";
  const wide = 184;
  const width = Math.max(0, ...places.map(({ left }) => left + wide)) + 4;
  const height = Math.max(0, ...places.map(({ top, height }) => top + height)) + 4;
  const lines = edges.map(([from, to]) => {
    const made = across(places[from], places[to], wide);
    made.dataset.ends = from + " " + to;
    return made;
  });
  const boxes = nodes.map((node, index) => pathBox(node, places[index], wide, index));
  const picture = shape("svg", { width, height, role: "group", "aria-label": "Gateways, their listeners, routes and rules, with policies" }, ...lines, ...boxes);
  const focused = at("paths-picture").contains(document.activeElement);
  at("paths-picture").replaceChildren(picture);
  here = Math.min(here, Math.max(0, boxes.length - 1));
  if (boxes.length) boxes[here].setAttribute("tabindex", "0");
  if (focused && boxes.length) boxes[here].focus({ preventScroll: true });
  const again = nodes.findIndex((node) => full(node) === lit);
  light(again);
}

function across(from, to, wide) {
  const [x1, y1, x2, y2] = [from.left + wide, from.top + 23, to.left, to.top + 23];
  const middle = (x1 + x2) / 2;
  return shape("path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}` });
}

function pathBox(node, { left, top, height }, wide, index) {
  const said = [node.trouble, ...node.lines.map(({ text, trouble }) => text + (trouble ? ", " + trouble : ""))].filter(Boolean);
  const group = shape("g", {
    class: node.trouble ? "bad" : "", transform: `translate(${left + 2} ${top + 2})`, role: "button", tabindex: "-1", "aria-pressed": "false",
    "aria-label": [full(node), ...said].join("; "),
  },
  shape("title", {}, [full(node), ...said].join("\n")),
  shape("rect", { width: wide, height, rx: 6 }),
  shape("text", { x: 8, y: 18, class: "kind" }, fitted(node.kind, wide)),
  shape("text", { x: 8, y: 36 }, fitted(node.name, wide)));
  node.lines.forEach(({ text, trouble }, number) => {
    group.append(shape("text", { x: 8, y: 54 + 18 * number, class: trouble ? "without" : "word" }, fitted(text, wide)));
  });
  group.addEventListener("click", () => { stand(index); light(full(node) === lit ? -1 : index); });
  return group;
}

// === Light on what a node is connected with

function connected(index, forward) {
  const found = new Set([index]);
  const [own, other] = forward ? [0, 1] : [1, 0];
  // A line leads from a node to one that is drawn after it, or not: rounds until nothing is added.
  for (let before = 0; before < found.size;) {
    before = found.size;
    for (const edge of drawing.edges) if (found.has(edge[own])) found.add(edge[other]);
  }
  return found;
}

function light(index) {
  const svg = at("paths-picture").firstElementChild;
  if (!svg) return;
  lit = index < 0 ? null : full(drawing.nodes[index]);
  svg.classList.toggle("some", index >= 0);
  const found = index < 0 ? new Set() : new Set([...connected(index, true), ...connected(index, false)]);
  const concerned = new Set(index < 0 ? [] : drawing.nodes[index].concerned);
  [...svg.querySelectorAll("g")].forEach((box, number) => {
    box.classList.toggle("lit", found.has(number));
    box.setAttribute("aria-pressed", String(number === index));
    const texts = box.querySelectorAll(".word, .without");
    drawing.nodes[number].lines.forEach(({ text }, place) => {
      texts[place].classList.toggle("concerned", found.has(number) && concerned.has(text));
    });
  });
  for (const path of svg.querySelectorAll("path")) {
    const [from, to] = path.dataset.ends.split(" ").map(Number);
    path.classList.toggle("lit", found.has(from) && found.has(to));
  }
  explain(index, found);
}

// What the light shows, in words.
function explain(index, found) {
  if (index < 0) return at("paths-lit").replaceChildren();
  const node = drawing.nodes[index];
  const list = (texts) => element("ul", "steps", ...texts.map((text) => element("li", "", element("bdi", "", text))));
  const parts = [element("p", "name", full(node))];
  if (node.trouble) parts.push(element("p", "bad", element("bdi", "", node.trouble)));
  if (node.concerned.length) parts.push(element("p", "", "Policies that act:"), list(node.concerned));
  else parts.push(element("p", "", "No policy acts here."));
  const others = [...found].flatMap((number) => drawing.nodes[number].lines.filter(({ trouble }) => trouble).map(({ text, trouble }) => text + ": " + trouble));
  if (others.length) parts.push(element("p", "", "Without effect:"), list([...new Set(others)]));
  if (node.command) parts.push(command(node.command, "Copy the command for " + full(node)));
  at("paths-lit").replaceChildren(...parts);
}

// === The keyboard: one stop for Tab, arrows from box to box

function stand(index) {
  const boxes = at("paths-picture").querySelectorAll("g");
  if (!boxes[index]) return;
  boxes[here]?.setAttribute("tabindex", "-1");
  here = index;
  boxes[here].setAttribute("tabindex", "0");
  boxes[here].focus();
}

function neighbour(key) {
  const { edges, places } = drawing;
  const nearest = (all) => all.sort((one, other) => Math.abs(places[one].top - places[here].top) - Math.abs(places[other].top - places[here].top))[0];
  if (key === "ArrowRight") return nearest(edges.filter(([from]) => from === here).map(([, to]) => to));
  if (key === "ArrowLeft") return nearest(edges.filter(([, to]) => to === here).map(([from]) => from));
  const column = places.map((_, index) => index).filter((index) => places[index].left === places[here].left);
  const beyond = (index) => key === "ArrowDown" ? places[index].top > places[here].top : places[index].top < places[here].top;
  return nearest(column.filter(beyond));
}

function press(event) {
  if (!drawing) return;
  if (event.key === "Enter" || event.key === " ") light(full(drawing.nodes[here]) === lit ? -1 : here);
  else if (event.key === "Escape") light(-1);
  else if (event.key.startsWith("Arrow")) {
    const next = neighbour(event.key);
    if (next !== undefined) stand(next);
  } else return;
  event.preventDefault();
}
