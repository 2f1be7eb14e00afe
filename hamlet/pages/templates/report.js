
// ------------------------------------------------------------------------------------------------ state and filter

const COLOURS = Array.from({ length: 8 }, (_, place) => `var(--c${place})`);
const COLOURED = 6; // lines of a chart that have a colour of their own
const LEFT = 52, RIGHT = 10, TOP = 12, BOTTOM = 22;
const state = { shown: new Set(DATA.queries.map((query) => query.name)), search: "", log: true };
const AXIS = DATA.axis;
const redraw = []; // what draws anew after a change of the filter or of the width

function refresh() { hideTip(); for (const draw of redraw) draw(); }

const chips = new Map();
for (const query of DATA.queries) {
  const chip = el("button", { "aria-pressed": "true", title: query.pattern, onclick: () => toggle(query.name) }, query.name);
  chips.set(query.name, chip);
  document.getElementById("queries").append(chip);
}

function toggle(name) {
  if (!state.shown.delete(name)) state.shown.add(name);
  pressed();
}

function pressed() {
  for (const [name, chip] of chips) chip.setAttribute("aria-pressed", String(state.shown.has(name)));
  say(`${state.shown.size} of ${chips.size} queries are shown`);
  refresh();
}

document.getElementById("all").onclick = () => { for (const name of chips.keys()) state.shown.add(name); pressed(); };
document.getElementById("none").onclick = () => { state.shown.clear(); pressed(); };
document.getElementById("search").oninput = (event) => { state.search = event.target.value.trim().toLowerCase(); refresh(); };
for (const name of ["log", "linear"]) {
  document.getElementById(name).onclick = () => {
    state.log = name === "log";
    for (const each of ["log", "linear"]) document.getElementById(each).setAttribute("aria-pressed", String(each === name));
    refresh();
  };
}
let resizing = 0;
addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(refresh); });

// --------------------------------------------------------------------------------------------------------- frames

// The axes of a chart. yTicks: [place from 0 (bottom) to 1, text].
function frame(host, height, first, last, yTicks, label) {
  const width = Math.max(host.clientWidth, 240);
  const inner = { left: LEFT, right: width - RIGHT, top: TOP, bottom: height - BOTTOM };
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  const x = (ticks) => inner.left + ((ticks - first) / Math.max(last - first, 1)) * (inner.right - inner.left);
  const y = (share) => inner.bottom - share * (inner.bottom - inner.top);
  for (const [share, text] of yTicks) {
    svg.append(el("line", { class: share === 0 ? "base" : "gridline", x1: inner.left, x2: inner.right, y1: y(share), y2: y(share) }),
      el("text", { x: inner.left - 7, y: y(share) + 4, "text-anchor": "end" }, text));
  }
  for (const [at, text] of timeTicks(first, last, AXIS, Math.max(2, Math.floor(width / 95)))) {
    svg.append(el("line", { class: "base", x1: x(at), x2: x(at), y1: inner.bottom, y2: inner.bottom + 4 }));
    const anchor = x(at) > width - 34 ? "end" : x(at) < inner.left + 20 ? "start" : "middle";
    svg.append(el("text", { x: x(at), y: height - 5, "text-anchor": anchor }, text));
  }
  host.replaceChildren(svg);
  return { svg, x, y, inner, width, height };
}

// Pointer and arrow keys go through the places of a chart: `places` are x coordinates, `show` draws a tool tip for one.
function explore(host, chart, places, show, upDown) {
  const cursor = el("line", { class: "cursor", y1: chart.inner.top, y2: chart.inner.bottom, visibility: "hidden" });
  chart.svg.append(cursor);
  let current = -1;
  const go = (place, clientX, clientY) => {
    current = place;
    cursor.setAttribute("x1", places[place]);
    cursor.setAttribute("x2", places[place]);
    cursor.setAttribute("visibility", "visible");
    const box = chart.svg.getBoundingClientRect();
    const scale = box.width / chart.width;
    show(place, clientX ?? box.left + places[place] * scale, clientY ?? box.top + box.height / 2, clientY === undefined ? null : (clientY - box.top) / scale);
  };
  host.onpointermove = (event) => {
    if (!places.length) return;
    const box = chart.svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * chart.width;
    go(nearest(places, at), event.clientX, event.clientY);
  };
  host.onpointerleave = host.onblur = () => { cursor.setAttribute("visibility", "hidden"); hideTip(); show(-1); };
  host.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9, PageUp: -10, PageDown: 10 }[event.key];
    if (step !== undefined && places.length) go(Math.max(0, Math.min(places.length - 1, (current < 0 && step > 0 ? -1 : current) + step)));
    else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && upDown && current >= 0) { upDown(event.key === "ArrowUp" ? -1 : 1); go(current); }
    else return;
    event.preventDefault();
  };
}

function nearest(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return low > 0 && value - sorted[low - 1] < sorted[low] - value ? low - 1 : low;
}

// ------------------------------------------------------------------------------------------------- results over time

// Of all shown values: how a value becomes a share of the height, and the ticks of the axis.
function scale(values, log) {
  if (log) {
    const logs = values.map((value) => value.log).filter((value) => value !== null);
    if (!logs.length) return null;
    let low = Math.min(...logs), high = Math.max(...logs);
    if (high - low < 1) { low = Math.floor(low); high = Math.max(Math.ceil(high), low + 1); }
    if (low < 0.31 * high && low >= 0) low = 0;
    const step = Math.max(1, niceStep((high - low) / 5));
    const ticks = [];
    for (let at = Math.ceil(low / step) * step; at <= high + 1e-9; at += step) ticks.push([(at - low) / (high - low), at >= 0 && at < 4 ? whole.format(10 ** at) : power(Math.round(at))]);
    return { of: (value) => (value.log === null ? null : (value.log - low) / (high - low)), ticks, note: values.some((value) => value.log === null) ? "values of 0 and below are not on a logarithmic axis" : "" };
  }
  const exponent = Math.max(...values.map((value) => (value.parts[0] ? value.parts[1] : -400)));
  const shift = exponent > 5 || exponent < -4 ? exponent : 0; // the axis counts in 10^shift
  const plain = (value) => value.parts[0] * 10 ** (value.parts[1] - shift);
  const all = values.map(plain);
  const low = Math.min(0, ...all), high = Math.max(0, ...all) || 1;
  const step = niceStep((high - low) / 5);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) ticks.push([(at - low) / (high - low), short.format(Math.abs(at) < step / 1e6 ? 0 : at)]);
  if (shift && ticks.length) ticks[ticks.length - 1][1] += `·${power(shift)}`;
  return { of: (value) => (plain(value) - low) / (high - low), ticks, note: "" };
}

const linesOf = (query) => query.lines.map((line, rank) => ({
  label: line.label || "all events", rank, at: new Map((line.bins || query.starts.map((_, place) => place)).map((bin, place) => [bin, place])),
  values: line.values.map((column) => column.map(number)),
}));

function resultCard(query) {
  const chart = el("div", { class: "chart", tabindex: "0", role: "group", "aria-label": `${query.name} over time` });
  const legend = el("div", { class: "legend" });
  const select = el("select", { "aria-label": `Aggregate of ${query.name}`, onchange: () => draw() }, ...query.measures.map((name, place) => el("option", { value: place, selected: place === query.first ? "" : null }, name)));
  const card = el("article", { class: "card", "data-query": query.name },
    el("div", { class: "top" }, el("h3", {}, query.name), query.measures.length > 1 ? select : el("span", { class: "soft" }, query.measures[0])),
    el("div", { class: "code pattern" }, query.pattern), chart, legend);
  let lines = null, chosen = null;

  function draw() {
    card.hidden = !state.shown.has(query.name);
    if (card.hidden) return;
    if (!query.rows) { chart.replaceChildren(el("p", { class: "nothing" }, "No window of this query has a trend.")); return; }
    lines = lines || linesOf(query);
    const measure = Number(select.value || 0);
    const found = lines.filter((line) => line.label.toLowerCase().includes(state.search));
    const values = found.flatMap((line) => line.values[measure]).filter((value) => value !== null);
    const band = query.band && !state.search ? query.band[measure] : null;
    const edges = band ? [...band.low, ...band.high].map(number).filter((value) => value !== null) : [];
    const axis = values.length || edges.length ? scale([...values, ...edges], state.log && !query.logarithms.includes(measure)) : null;
    if (!axis) {
      chart.onpointermove = chart.onkeydown = null;
      chart.replaceChildren(el("p", { class: "nothing" }, found.length ? (values.length ? "No value above 0: see the linear axis." : "All values are NULL.") : "No group that is drawn here has this name."));
      showLegend(found);
      return;
    }
    const made = frame(chart, 210, FIRST, LAST, axis.ticks, `${query.measures[measure]} of ${query.name}: ${found.length} of ${query.groups} groups`);
    const x = query.starts.map(made.x);
    if (band) drawBand(made, x, band, axis);
    for (const line of [...found].reverse()) drawLine(made, x, line, measure, axis);
    showLegend(found, axis.note);
    explore(chart, made, x, (bin, clientX, clientY, height) => pointAt(bin, clientX, clientY, height, found, measure, axis, made, band),
      (step) => { const place = found.indexOf(chosen); chosen = found[(place + step + found.length) % found.length]; mark(); });
    mark();
  }

  function drawBand(made, x, band, axis) {
    let high = [], low = [], last = -2, path = "";
    const end = () => { if (high.length > 1) path += `M${high.join("L")}L${low.join("L")}Z`; high = []; low = []; };
    x.forEach((at, bin) => {
      const top = number(band.high[bin]), bottom = number(band.low[bin]);
      if (!top || axis.of(top) === null) return;
      if (last >= 0 && query.starts[bin] - query.starts[last] > GAP(query)) end();
      high.push(`${at.toFixed(1)},${made.y(axis.of(top)).toFixed(1)}`);
      low.unshift(`${at.toFixed(1)},${made.y((bottom && axis.of(bottom)) ?? 0).toFixed(1)}`);
      last = bin;
    });
    end();
    made.svg.append(el("path", { d: path || "M0 0", fill: "var(--band)" }));
  }

  function drawLine(made, x, line, measure, axis) {
    const colour = colourOf(line);
    let path = "", last = -2;
    const group = el("g", { "data-line": line.rank, stroke: colour, fill: colour });
    const joins = (bin, next) => line.at.has(bin) && line.at.has(next) && query.starts[next] - query.starts[bin] <= GAP(query);
    const alone = (bin) => !joins(bin - 1, bin) && !joins(bin, bin + 1);
    for (const [bin, place] of line.at) {
      const value = line.values[measure][place];
      const share = value === null ? null : axis.of(value);
      if (share === null) { last = -2; continue; }
      path += `${bin === last + 1 && query.starts[bin] - query.starts[last] <= GAP(query) ? "L" : "M"}${x[bin].toFixed(1)} ${made.y(share).toFixed(1)}`;
      last = bin;
      if (query.starts.length <= 40 || alone(bin)) group.append(el("circle", { cx: x[bin].toFixed(1), cy: made.y(share).toFixed(1), r: 1.8, stroke: "none" }));
    }
    group.prepend(el("path", { d: path || "M0 0", fill: "none", "stroke-width": strokeOf(line.rank), "stroke-linejoin": "round" }));
    made.svg.append(group);
  }

  function pointAt(bin, clientX, clientY, height, found, measure, axis, made, band) {
    if (bin < 0) return;
    const here = found.filter((line) => line.at.has(bin)).map((line) => [line, line.values[measure][line.at.get(bin)]]);
    here.sort((one, other) => (other[1]?.parts[1] ?? -1e9) - (one[1]?.parts[1] ?? -1e9) || (other[1]?.parts[0] ?? -1) - (one[1]?.parts[0] ?? -1));
    if (height !== null && here.length) {
      const distance = ([, value]) => (value && axis.of(value) !== null ? Math.abs(made.y(axis.of(value)) - height) : 1e9);
      chosen = here.reduce((one, other) => (distance(other) < distance(one) ? other : one))[0];
      mark();
    }
    const place = Math.max(0, here.findIndex(([line]) => line === chosen));
    const from = Math.max(0, Math.min(place - 4, here.length - 8));
    const rows = here.slice(from, from + 8).map(([line, value]) => [colourOf(line), line.label, value ? value.text : "NULL", line === chosen]);
    const until = query.joined > 1 ? query.starts[Math.min(bin + 1, query.starts.length - 1)] : query.ends ? query.ends[bin] : query.starts[bin] + query.within;
    const more = [here.length > 8 ? `${here.length - 8} more groups` : "", query.joined > 1 ? `largest of up to ${query.joined} windows that begin in this span` : "",
      band && band.high[bin] !== null ? `all ${query.sample ? "groups of the sample" : `${whole.format(query.groups)} groups`}: ${number(band.low[bin]).text} to ${number(band.high[bin]).text}` : ""].filter(Boolean).join("; ");
    showTip(clientX, clientY, spanText(query.starts[bin], Math.max(until, query.starts[bin]), AXIS), rows.length ? rows : [[null, "no trend in a group that is drawn", ""]], more);
    if (height === null) say(`${timeText(query.starts[bin], AXIS)}: ${here.slice(place, place + 1).map(([line, value]) => `${line.label} ${value ? value.text : "NULL"}`).join()}`);
  }

  function mark() {
    for (const group of chart.querySelectorAll("[data-line]")) {
      const on = chosen && Number(group.dataset.line) === chosen.rank;
      group.setAttribute("opacity", chosen && !on ? 0.3 : Number(group.dataset.line) < COLOURED ? 1 : 0.4);
      group.firstChild.setAttribute("stroke-width", on ? 2.6 : strokeOf(Number(group.dataset.line)));
      if (on && group !== chart.querySelector("svg").lastChild) chart.querySelector("svg").insertBefore(group, chart.querySelector(".cursor"));
    }
    for (const button of legend.querySelectorAll("button")) button.setAttribute("aria-pressed", String(!!chosen && Number(button.dataset.rank) === chosen.rank));
  }

  function showLegend(found, note) {
    const by = query.groupedBy.join(", ");
    const keys = found.slice(0, COLOURED).map((line) => el("button", { "data-rank": line.rank, title: line.label, onclick: () => { chosen = chosen === line ? null : line; mark(); } },
      el("i", { class: "swatch", style: `background:${colourOf(line)}` }), line.label));
    const drawn = query.lines.length < query.groups ? `; ${whole.format(query.lines.length)} of ${whole.format(query.groups)} groups are drawn, those with the largest ${query.measures[query.first]}${query.band ? `, the band has all${query.sample ? " of the sample" : ""}` : ""}` : "";
    legend.replaceChildren(by ? `${by}:` : "", ...keys, found.length > COLOURED ? `+ ${found.length - COLOURED} more` : "",
      el("span", {}, `${whole.format(query.rows)} rows${query.sample ? `; ${query.sample}` : ""}${drawn}${query.joined > 1 ? `; a point is the largest of ${query.joined} windows` : ""}${note ? `; ${note}` : ""}`));
  }

  redraw.push(draw);
  return card;
}

const strokeOf = (rank) => (rank < 3 ? 1.6 : 1.1);
const colourOf = (line) => (line.rank < COLOURED ? COLOURS[line.rank] : "var(--rest)");
// Starts further apart than this are not joined by a line: in windows between them no group has a trend.
const GAP = (query) => query.gap || (query.gap = query.joined > 1 || query.sample ? Math.max(1.5 * query.joined * query.slide, 3.5 * median(steps(query.starts))) : query.slide);
const steps = (starts) => starts.slice(1).map((start, place) => start - starts[place]);
const median = (values) => [...values].sort((one, other) => one - other)[values.length >> 1] || 1;

const EDGES = DATA.queries.flatMap((query) => (query.rows ? [query.starts[0], query.starts.at(-1) + query.within] : []));
const EVENTS = DATA.events;
const EVENT_EDGES = EVENTS ? [EVENTS.first, EVENTS.first + EVENTS.length * EVENTS.types[0].counts.length] : [];
const FIRST = Math.min(...(EDGES.length ? EDGES : EVENT_EDGES)), LAST = Math.max(...(EDGES.length ? EDGES : EVENT_EDGES));
document.getElementById("charts").append(...DATA.queries.map(resultCard));

// ----------------------------------------------------------------------------------------------------- stacked bars

// columns: for each bin the value of every kind. spans: from and to of each bin in ticks.
function stackedBars(host, height, first, last, spans, columns, names, colours, label, unit) {
  const totals = columns.map((column) => column.reduce((one, other) => one + other, 0));
  const step = niceStep(Math.max(...totals, 1e-9) / 4);
  const high = Math.max(step, Math.ceil(Math.max(...totals) / step) * step);
  const ticks = [];
  for (let at = 0; at <= high * 1.0001; at += step) ticks.push([at / high, short.format(at)]);
  const made = frame(host, height, first, last, ticks, label);
  columns.forEach((column, bin) => {
    let below = 0;
    const left = made.x(spans[bin][0]), width = Math.max(made.x(spans[bin][1]) - left - 0.6, 0.8);
    column.forEach((value, kind) => {
      if (!value) return;
      const top = made.y((below + value) / high);
      made.svg.append(el("rect", { x: left.toFixed(2), width: width.toFixed(2), y: top.toFixed(2), height: Math.max(made.y(below / high) - top, 0.5).toFixed(2), fill: colours[kind] }));
      below += value;
    });
  });
  explore(host, made, spans.map(([from, to]) => (made.x(from) + made.x(to)) / 2), (bin, clientX, clientY, atHeight) => {
    if (bin < 0) return;
    const rows = names.map((name, kind) => [colours[kind], name, short.format(columns[bin][kind]), false]).filter((_, kind) => columns[bin][kind]);
    showTip(clientX, clientY, spanText(...spans[bin], AXIS), rows.length ? rows : [[null, "nothing", ""]], names.length > 1 ? `${short.format(totals[bin])} ${unit} in all` : unit);
    if (atHeight === null) say(`${timeText(spans[bin][0], AXIS)}: ${rows.map((row) => `${row[1]} ${row[2]}`).join(", ")}`);
  });
}

function keyOf(names, colours) {
  return el("div", { class: "legend" }, ...names.map((name, place) => el("span", { class: "item" }, el("i", { class: "swatch", style: `background:${colours[place]}` }), name)));
}

if (EVENTS) {
  const host = el("div", { class: "chart", tabindex: "0", role: "group", "aria-label": "Events per minute" });
  const names = EVENTS.types.map((type) => type.name);
  const minute = (60 * AXIS.perSecond) / EVENTS.length;
  const columns = EVENTS.types[0].counts.map((_, bin) => EVENTS.types.map((type) => type.counts[bin] * minute));
  const spans = columns.map((_, bin) => [EVENTS.first + bin * EVENTS.length, EVENTS.first + (bin + 1) * EVENTS.length]);
  document.getElementById("events").append(host, keyOf(names, COLOURS));
  redraw.push(() => stackedBars(host, 200, EVENT_EDGES[0], EVENT_EDGES[1], spans, columns, names, COLOURS, "Events per minute, by type", "events a minute"));
}

// ------------------------------------------------------------------------------------------------ sharing decisions

const KINDS = { shared: "var(--c0)", merged: "var(--c2)", split: "var(--c1)", alone: "var(--rest)" };
const HELD = DATA.decisions;
const hidden = new Set(); // kinds of decisions that are not drawn

// With a filter on queries: what those share, and what is shared by nobody.
const setShown = (set) => !HELD.sets[set] || !HELD.sets[set].length || HELD.sets[set].some((name) => state.shown.has(name));

function binned(value, kinds) {
  const columns = Array.from({ length: HELD.bins }, () => new Array(kinds).fill(0));
  for (const sum of HELD.sums) if (setShown(sum[2]) && !hidden.has(sum[1])) value(columns[sum[0]], sum);
  return columns;
}

function decisionCharts() {
  const colours = HELD.kinds.map((kind) => KINDS[kind] || "var(--c3)");
  const spans = Array.from({ length: HELD.bins }, (_, bin) => [HELD.first + bin * HELD.length, HELD.first + (bin + 1) * HELD.length]);
  const edges = [HELD.first, HELD.first + HELD.bins * HELD.length];
  const host = (id, label) => {
    const node = el("div", { class: "chart", tabindex: "0", role: "group", "aria-label": label });
    document.getElementById(id).append(node);
    return node;
  };
  const line = host("timeline", "Decisions over time"), snapshots = host("snapshots", "Snapshots created over time"), bursts = host("bursts", "Burst by burst");
  for (const id of ["timeline", "bursts"]) document.getElementById(id).append(kindKey(colours));
  document.getElementById("snapshots").append(el("div", { class: "legend" }, "what shared work costs: one when a graphlet is opened or merged, and more where queries accept different events"));
  const select = document.getElementById("measure");
  select.onchange = refresh;
  redraw.push(() => {
    const place = select.value === "events" ? 4 : 3;
    stackedBars(line, 200, ...edges, spans, binned((column, sum) => { column[sum[1]] += sum[place]; }, HELD.kinds.length), HELD.kinds, colours, "Decisions over time", select.value);
    stackedBars(snapshots, 200, ...edges, spans, binned((column, sum) => { column[0] += sum[5]; }, 1), ["snapshots"], ["var(--c5)"], "Snapshots created over time", "");
    burstStrip(bursts, colours);
    setTable();
  });
  document.getElementById("thinned").textContent = HELD.bursts.length < HELD.standsFor
    ? `The largest bursts of each type, decision and span of time: ${whole.format(HELD.bursts.length)} of ${whole.format(HELD.standsFor)}, in their order. The height is the number of events, on a logarithmic axis.`
    : `All ${whole.format(HELD.standsFor)} bursts in their order. The height is the number of events, on a logarithmic axis.`;
}

// A key whose entries hide and show their kind, in all charts of decisions.
function kindKey(colours) {
  return el("div", { class: "legend" }, ...HELD.kinds.map((name, kind) => el("button", { "data-kind": kind, "aria-pressed": "true", onclick: () => {
    if (!hidden.delete(kind)) hidden.add(kind);
    for (const button of document.querySelectorAll(`[data-kind="${kind}"]`)) button.setAttribute("aria-pressed", String(!hidden.has(kind)));
    refresh();
  } }, el("i", { class: "swatch", style: `background:${colours[kind]}` }), name)));
}

function burstStrip(host, colours) {
  const bursts = HELD.bursts.filter((burst) => setShown(burst[3]) && !hidden.has(burst[4]));
  const lane = 46, types = HELD.types, height = TOP + types.length * lane + 8;
  const width = Math.max(host.clientWidth, 240), left = 90;
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${bursts.length} bursts` });
  const most = Math.log2(1 + Math.max(1, ...bursts.map((burst) => burst[5])));
  const step = (width - left - RIGHT) / Math.max(bursts.length, 12);
  types.forEach((type, place) => {
    const base = TOP + (place + 1) * lane - 6;
    svg.append(el("line", { class: "base", x1: left, x2: width - RIGHT, y1: base, y2: base }),
      el("text", { x: left - 8, y: base - 3, "text-anchor": "end" }, type.length > 13 ? `${type.slice(0, 12)}…` : type));
  });
  const places = bursts.map((burst, place) => {
    const size = Math.max(2, (Math.log2(1 + burst[5]) / most) * (lane - 12)), base = TOP + (burst[2] + 1) * lane - 6;
    svg.append(el("rect", { x: (left + place * step).toFixed(2), width: Math.min(Math.max(step - 0.7, 0.9), 14).toFixed(2), y: (base - size).toFixed(1), height: size.toFixed(1), fill: colours[burst[4]] }));
    return left + (place + 0.5) * step;
  });
  host.replaceChildren(svg);
  explore(host, { svg, width, inner: { top: TOP, bottom: height - 8 } }, places, (place, clientX, clientY, atHeight) => {
    if (place < 0) return;
    const [pane, key, type, set, kind, b, n, g, k, created, propagated, shared, separate] = bursts[place];
    const rows = [[colours[kind], HELD.kinds[kind], HELD.types[type], true], [null, "partition", HELD.keys[key] || "all events"],
      [null, "events: burst, window, graphlet", `${whole.format(b)}, ${whole.format(n)}, ${whole.format(g)}`], [null, "queries that could share", whole.format(k)],
      [null, "snapshots created, carried", `${created}, ${propagated}`], [null, "cost: shared, separate", `${short.format(shared)}, ${short.format(separate)}`]];
    showTip(clientX, clientY, timeText(pane, AXIS), rows, HELD.sets[set].length ? `shared by ${HELD.sets[set].join(", ")}` : "");
    if (atHeight === null) say(`${HELD.kinds[kind]}, ${b} events of ${HELD.types[type]}`);
  });
}

function setTable() {
  const totals = new Map();
  for (const [, kind, set, count, events, created, benefit] of HELD.sums) {
    if (!setShown(set)) continue;
    const row = totals.get(set) || { bursts: 0, events: 0, created: 0, benefit: 0 };
    row.bursts += count; row.events += events; row.created += created; row.benefit += benefit;
    totals.set(set, row);
  }
  const name = (set) => (!HELD.sets[set] ? `${HELD.others} other sets of queries` : HELD.sets[set].join(", ") || "nobody");
  const rows = [...totals].sort(([, one], [, other]) => other.events - one.events).slice(0, 12);
  document.getElementById("sets").replaceChildren(el("table", {},
    el("tr", {}, el("th", {}, "shared by"), ...["bursts", "events", "snapshots created", "cost: separate minus shared"].map((text) => el("th", { class: "n" }, text))),
    ...rows.map(([set, row]) => el("tr", {}, el("td", {}, name(set)), ...[row.bursts, row.events, row.created].map((value) => el("td", { class: "n" }, whole.format(value))), el("td", { class: "n" }, short.format(row.benefit))))));
}

if (HELD) decisionCharts();
refresh();
