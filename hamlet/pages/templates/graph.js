
// Graphs: dagre (vendor/) places states and labels, so that few arrows cross; here they become SVG. Texts are set as text.

const LINE = 15, HEIGHT = 42, LOOP = 26;
const pen = document.createElement("canvas").getContext("2d");
function textWidth(text, font) { pen.font = `${font} system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif`; return pen.measureText(text).width; }
const widest = (lines, font) => Math.max(0, ...lines.map((line) => textWidth(line, font)));
const fixed = (value) => value.toFixed(1);

// Where the way from the middle of a state towards a point has left the state by some pixels.
function border({ state, x, y, body }, point, more = 0) {
  const dx = point.x - x, dy = point.y - y, wide = body / 2 + more, high = (state.title ? HEIGHT / 2 : 7) + more;
  const share = Math.min(dx ? wide / Math.abs(dx) : Infinity, dy ? high / Math.abs(dy) : Infinity, 1e9);
  return { x: x + dx * share, y: y + dy * share };
}

// A smooth curve through the points of a way (Catmull and Rom's).
function curve(points) {
  const at = (place) => points[Math.max(0, Math.min(points.length - 1, place))];
  const bend = (from, to, sign, middle) => `${fixed(middle.x + sign * (to.x - from.x) / 6)} ${fixed(middle.y + sign * (to.y - from.y) / 6)}`;
  return points.slice(1).reduce((path, point, place) => `${path}C${bend(at(place - 1), point, 1, at(place))} ${bend(at(place), at(place + 2), -1, point)} ${fixed(point.x)} ${fixed(point.y)}`, `M${fixed(points[0].x)} ${fixed(points[0].y)}`);
}

// From a state to itself: a loop above it, the label on top.
function loop({ x, y, body }) {
  const top = y - HEIGHT / 2, half = Math.min(body / 2 - 10, 18), bend = top - LOOP * 1.3;
  return { path: `M${fixed(x - half)} ${fixed(top)}C${fixed(x - half - 8)} ${fixed(bend)} ${fixed(x + half + 8)} ${fixed(bend)} ${fixed(x + half)} ${fixed(top - 5)}`, x, top: top - LOOP };
}

const lines = (texts, x, y, kind) => texts.map((text, place) => el("text", { class: kind, x: fixed(x), y: fixed(y + place * LINE) }, text));

function drawGraph(host, { states, arrows, direction, label }) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: direction, nodesep: 26, edgesep: 16, ranksep: 34, marginx: 12, marginy: 20 });
  const loops = new Map(arrows.filter((arrow) => arrow.source === arrow.target).map((arrow) => [arrow.source, arrow]));
  states.forEach((state, number) => {
    const body = state.title ? Math.max(54, textWidth(state.title, "600 13px") + 26, textWidth(state.subtitle, "10.5px") + 22) : 14;
    const above = loops.has(number) ? LOOP + LINE * loops.get(number).label.length : 0; // dagre's boxes have their state in the middle
    graph.setNode(String(number), {
      state, body, width: Math.max(body, widest(state.below, "11.5px"), widest(loops.get(number)?.label ?? [], "11.5px")),
      height: (state.title ? HEIGHT : 14) + 2 * Math.max(LINE * state.below.length, above),
    });
  });
  arrows.forEach((arrow, number) => {
    if (arrow.source !== arrow.target) graph.setEdge(String(arrow.source), String(arrow.target), { arrow, width: widest(arrow.label, "11.5px") + 8, height: arrow.label.length * LINE + 2, labelpos: "c" }, String(number));
  });
  const last = states.flatMap((state, number) => (state.last ? [number] : [])); // they all lead to a state that is not drawn
  if (last.length) graph.setNode("end", { width: 0, height: 0 });
  for (const number of last) graph.setEdge(String(number), "end", { weight: 9 }, "end");
  dagre.layout(graph);
  const svg = el("svg", { class: "drawing", tabindex: "0", role: "group", "aria-label": label }, el("defs", {}, ...["grey", "p0", "p1", "p2", "p3", "p4", "p5"].map((name) =>
    el("marker", { id: `${name}-tip`, viewBox: "0 0 10 10", refX: 4, refY: 5, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, el("path", { class: `${name}-tip`, d: "M0 0.6L10 5L0 9.4Z" })))));
  const labels = [];
  const add = (arrow, path, x, top) => {
    const width = widest(arrow.label, "11.5px") + 6, marker = arrow.classes[0] === "p" ? `${arrow.classes}-tip` : "grey-tip";
    svg.append(el("g", { class: `arrow ${arrow.classes}`, "data-q": arrow.queries, "data-tip": arrow.tip }, el("path", { class: "reach", d: path }), el("path", { class: "way", d: path, "marker-end": `url(#${marker})` })));
    if (arrow.label.length) labels.push(el("g", { class: "label", "data-q": arrow.queries, "data-tip": arrow.tip },
      el("rect", { x: fixed(x - width / 2), y: fixed(top), width: fixed(width), height: arrow.label.length * LINE + 1, rx: 4 }), ...lines(arrow.label, x, top + 12)));
  };
  for (const name of graph.edges()) {
    if (name.w === "end") continue;
    const { arrow, points, x, y, height } = graph.edge(name), from = graph.node(name.v), to = graph.node(name.w);
    add(arrow, curve([border(from, points[1]), ...points.slice(1, -1), border(to, points.at(-2), 5)]), x, y - height / 2);
  }
  for (const [number, arrow] of loops) {
    const { path, x, top } = loop(graph.node(String(number)));
    add(arrow, path, x, top - LINE * arrow.label.length + 4);
  }
  svg.append(...labels);
  for (const name of graph.nodes()) {
    if (name === "end") continue;
    const { state, x, y, body } = graph.node(name), left = x - body / 2, top = y - HEIGHT / 2;
    svg.append(el("g", { class: `state ${state.classes}`, "data-q": state.queries, "data-tip": state.tip }, ...(!state.title ? [el("circle", { cx: fixed(x), cy: fixed(y), r: 7 })] : [
      el("rect", { class: "body", x: fixed(left), y: fixed(top), width: fixed(body), height: HEIGHT, rx: state.round }),
      state.classes.includes("final") ? el("rect", { class: "inner", x: fixed(left + 3.5), y: fixed(top + 3.5), width: fixed(body - 7), height: HEIGHT - 7, rx: 17.5 }) : null,
      ...lines([state.title], x, y + (state.subtitle ? -1 : 5), "title"), ...lines(state.subtitle ? [state.subtitle] : [], x, y + 12, "sub"),
      ...lines(state.below, x, y + HEIGHT / 2 + 13, "below")])));
  }
  const { width, height } = graph.graph();
  for (const [name, value] of Object.entries({ width: Math.ceil(width), height: Math.ceil(height), viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`, style: `min-width:${Math.round(width * 0.74)}px` })) svg.setAttribute(name, value);
  host.replaceChildren(svg);
}

for (const host of document.querySelectorAll("[data-graph]")) drawGraph(host, DATA.graphs[Number(host.dataset.graph)]);

function describe(node, x, y) {
  const [title, ...said] = node.dataset.tip.split("\n");
  const box = node.getBoundingClientRect();
  showTip(x ?? box.right, y ?? box.top + box.height / 2, title, said.slice(0, 14).map((line) => [null, line, ""]), said.length > 14 ? `and ${said.length - 14} more` : "");
}

for (const node of document.querySelectorAll("[data-tip]")) {
  if (!node.dataset.tip) continue;
  node.addEventListener("pointermove", (event) => describe(node, event.clientX, event.clientY));
  node.addEventListener("pointerleave", hideTip);
}

// A drawing takes the focus as a whole; arrow keys go from state to state.
for (const drawing of document.querySelectorAll(".drawing")) {
  const states = [...drawing.querySelectorAll(".state[data-tip]")];
  let current = -1;
  const leave = () => { for (const state of states) state.classList.remove("at"); hideTip(); };
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -1e9, End: 1e9 }[event.key];
    if (step === undefined || !states.length) return;
    event.preventDefault();
    leave();
    current = Math.max(0, Math.min(states.length - 1, current + step));
    states[current].classList.add("at");
    describe(states[current]);
    say(states[current].dataset.tip.replaceAll("\n", ", "));
  });
  drawing.addEventListener("blur", leave);
}
