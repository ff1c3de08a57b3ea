"use strict";
// The sections of the page but the Instances, in their order.

function drawSummary() {
  const counts = [
    ["trouble", graph.trouble.total ? graph.trouble.total + " in trouble" : "nothing in trouble", graph.trouble.total ? "bad" : ""],
    ["plans", many(graph.plans.total, "plan runs", "plans run"), ""],
    ["gateways", many(graph.gateways.total, "gateway", "gateways"), ""],
    ["instances", many(graph.total, "Instance", "Instances"), ""],
    ["versions", many(graph.versions.total, "OperatorVersion", "OperatorVersions"), ""],
  ];
  put(at("summary"), counts.map((count) => keep("summary/" + count[0], count, ([id, text, kind]) => {
    const link = element("a", kind, text);
    link.href = "#" + id + "-title";
    link.addEventListener("click", (event) => {
      // The part of the address after # is the filter.
      event.preventDefault();
      at(id + "-title").focus();
      at(id + "-title").scrollIntoView();
    });
    return link;
  })));
  document.title = (graph.trouble.total ? "(" + graph.trouble.total + ") " : "") + "Interlock";
}

const many = (count, one, more) => count + " " + (count === 1 ? one : more);

function drawTrouble() {
  put(at("trouble"), section("trouble", graph.trouble, trouble, ["Nothing is stalled, drifted, failed or waiting."]));
  at("trouble").className = graph.trouble.total ? "" : "bare";
  at("trouble").setAttribute("role", graph.trouble.total ? "list" : "group");
}

function trouble(one) {
  const colour = one.state === "waiting" || one.state === "not ready" ? "wait" : "bad";
  const head = element("div", "head", element("span", "state " + colour, one.state), title(one),
    element("bdi", "quiet", one.reason), element("span", "quiet end", since(one.since, "for ")));
  const item = element("div", "trouble edge-" + colour, head);
  item.setAttribute("role", "listitem");
  if (one.message) item.append(element("p", "", element("bdi", "", one.message)));
  for (const { reason, message } of one.also) item.append(element("p", "quiet", element("bdi", "", reason + ": " + message)));
  const label = "Copy the command for " + one.kind + " " + (one.namespace ? one.namespace + "/" : "") + one.name;
  item.append(element("div", "remedy", element("span", "", one.next), command(one.command, label)));
  return item;
}

function drawPlans() {
  const columns = [["Instance", "c-name"], ["Plan", "c-kind"], ["Progress", ""], ["At", ""], ["Age", "c-age end"]];
  const rows = section("plans", graph.plans, (plan) => {
    const known = plan.steps > 0;
    const progress = element("progress", "");
    progress.max = plan.steps || 1;
    progress.value = plan.done;
    progress.setAttribute("aria-hidden", "true");
    const words = known ? plan.done + " of " + many(plan.steps, "step", "steps") : plan.status;
    const trouble = plan.status === "ERROR" || plan.status === "FATAL_ERROR";
    const place = plan.step ? plan.phase + " / " + plan.step : "";
    return row([title(plan)], [element("bdi", "", plan.plan), "Plan"],
      [element("span", trouble ? "bad" : "", ...(known ? [progress] : []), words + (trouble ? ", " + plan.status : "")), "Progress"],
      [place ? element("bdi", "", place) : "", "At"], [since(plan.started), "Age", "end"]);
  }, ["No plan runs. A plan runs when an Instance is created or changed, or by hand:", "$ interlock plan trigger NAME -n NAMESPACE --plan PLAN"]);
  table("plans", columns, rows);
}

function drawGateways() {
  const columns = [["Gateway", "c-name"], ["Kind", "c-kind"], ["Router flavor", ""], ["Ready", "c-small"], ["Age", "c-age end"]];
  const flavors = graph.capabilities.find((capability) => capability.name === "flavors");
  const why = flavors && flavors.state !== "Running" && flavors.message ? "Kong's kinds are not watched: " + flavors.message + "." : "No gateway is known.";
  const rows = section("gateways", graph.gateways, (gateway) => {
    const { flavor, next, staged, ready, wanted, programmed } = gateway;
    const live = element("span", "", element("bdi", "", flavor));
    if (next) live.append(element("span", "busy", " → " + next), element("span", "quiet", staged ? " (staged)" : " (rolling out)"));
    if (gateway.rollout) live.append(rolloutOf(gateway));
    let pods = "";
    if (wanted !== null && ready !== null) pods = element("span", ready < wanted ? "wait" : "", ready + " of " + many(wanted, "pod", "pods"));
    else if (wanted !== null) pods = element("span", "quiet", many(wanted, "pod", "pods"));
    if (programmed !== null) pods = element("span", programmed ? "" : "wait", programmed ? "programmed" : "not programmed");
    return row([title({ ...gateway, kind: "" })], [gateway.kind, "Kind"], [live, gateway.kind === "Gateway" ? "Class" : "Flavor"],
      [pods, "Ready"], [since(gateway.created), "Age", "end"]);
  }, [why + " DataPlanes are guarded without more; a Deployment that runs Kong is guarded by its label:", "$ kubectl label deployment NAME interlock.dev/guard=kong-router-flavor"]);
  table("gateways", columns, rows);
}

const ROLLOUT = { Idle: "good", Staging: "busy", Promoting: "busy", AwaitingPromotion: "wait", Starting: "wait", Unreported: "quiet" };
const GATE = { passed: "passed", closed: "closed", notReached: "not reached" };

// The phase, the sides with their pods, what the closed gate waits for, and what to do.
function rolloutOf({ namespace, name, rollout }) {
  const { phase, sides, gates, next, command: line } = rollout;
  const head = element("div", "head", element("span", "state " + (ROLLOUT[phase] || "bad"), phase), since(rollout.since, "for "));
  for (const { side, colour, ready, wanted } of sides) {
    head.append(element("span", "quiet", [colour, side, ready + "/" + wanted].filter(Boolean).join(" ")));
  }
  const all = element("div", "rollout", head);
  const closed = gates.find(({ state }) => state === "closed");
  if (closed) {
    const gate = element("p", "", element("span", "quiet", "gate " + closed.gate + (closed.gate === "spec" ? " is closed: " : " waits for: ")), element("bdi", "", closed.waitsFor || ""));
    gate.title = gates.map(({ gate, state }) => gate + ": " + GATE[state]).join(", ");
    all.append(gate);
  }
  if (next) all.append(element("div", "remedy", element("span", "", next), command(line, "Copy the command for the rollout of " + namespace + "/" + name)));
  return all;
}

function drawVersions() {
  const columns = [["OperatorVersion", "c-name"], ["Used by", ""], ["Age", "c-age end"]];
  const rows = section("versions", graph.versions, (version) => row([title(version)],
    [version.left_out ? element("span", "bad", "left out: " + version.left_out) : many(version.users, "Instance", "Instances"), "Used by"],
    [since(version.created), "Age", "end"]),
  ["No OperatorVersion is known. Each package brings one."]);
  table("versions", columns, rows);
}

function drawCapabilities() {
  put(at("capabilities-line"), [keep("capabilities/line", graph.capabilities, capabilityLine)]);
  put(at("capabilities-list"), graph.capabilities.map((capability) => keep("capabilities/list/" + capability.name, capability, capabilityItem)));
}

const unwatched = ({ kinds }) => kinds.filter((kind) => kind.watch_state !== "synced");

function capabilityLine(capabilities) {
  const runs = capabilities.filter(({ state }) => state === "Running");
  const wanted = capabilities.filter(({ state }) => state !== "Disabled");
  const line = element("span", "", element("span", "state " + (runs.length ? "good" : "quiet"), runs.length + " of " + wanted.length + " run"));
  for (const { name, state, message } of capabilities) {
    if (state === "Running") continue;
    const colour = { Starting: "busy", Draining: "busy", Waiting: "quiet", Disabled: "quiet" }[state] || "bad";
    line.append(element("span", colour, " · " + name + ": " + (state === "Waiting" ? first(message) : state.toLowerCase())));
  }
  // Kinds that a capability can do without, by why they are not watched.
  const reasons = new Map();
  for (const kind of runs.flatMap(unwatched)) reasons.set(kind.watch_state, (reasons.get(kind.watch_state) || new Set()).add(kind.name));
  for (const [why, names] of reasons) line.append(element("span", "quiet", " · " + (names.size === 1 ? [...names][0] + " " + why : names.size + " kinds " + plural(why))));
  return line;
}

const plural = (why) => why.replace(/^is /, "are ").replace(/^has /, "have ").replace(/^serves /, "serve ");

function capabilityItem({ name, state, message, since: time, ...capability }) {
  const item = element("li", "", element("strong", "", name), " " + state + " ", element("span", "quiet", since(time, "for ")));
  if (message) item.append(element("div", "quiet", message));
  const reasons = new Map();
  for (const kind of unwatched(capability)) reasons.set(kind.watch_state, [...(reasons.get(kind.watch_state) || []), kind.name]);
  for (const [why, names] of reasons) item.append(element("div", "quiet", names.join(", ") + ": " + why));
  return item;
}

// The first of the reasons for which a capability waits; the folded list has all of them.
const first = (message) => message.split("; ")[0];
