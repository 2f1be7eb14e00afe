
// ------------------------------------------------------------------------------------------------ state and filter

const COLOURS = Array.from({ length: 8 }, (_, place) => `var(--c${place})`);
const COLOURED = 6; // lines of a chart that have a colour of their own
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
let resizing = 0, width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; cancelAnimationFrame(resizing); resizing = requestAnimationFrame(refresh); } });

// ------------------------------------------------------------------------------------------------- results over time

// How the shown values become places on the axis, which a double holds: as logarithms, or as multiples of a power of ten.
function scale(values, log) {
  if (log) {
    const logs = values.map((value) => value.log).filter((value) => value !== null);
    if (!logs.length) return null;
    let low = Math.min(...logs), high = Math.max(...logs);
    if (high - low < 1) { low = Math.floor(low); high = Math.max(Math.ceil(high), low + 1); }
    if (low < 0.31 * high && low >= 0) low = 0;
    return {
      of: (value) => value.log, range: [low, high],
      axis: { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6], values: (_, splits) => splits.map((at) => (at >= 0 && at < 4 ? whole.format(10 ** at) : power(Math.round(at)))) },
      note: values.some((value) => value.log === null) ? "values of 0 and below are not on a logarithmic axis" : "",
    };
  }
  const exponent = Math.max(...values.map((value) => (value.parts[0] ? value.parts[1] : -400)));
  const shift = exponent > 5 || exponent < -4 ? exponent : 0; // the axis counts in 10^shift
  const of = (value) => value.parts[0] * 10 ** (value.parts[1] - shift);
  const all = values.map(of);
  const range = [Math.min(0, ...all), Math.max(0, ...all) || 1];
  return { of, range, axis: { values: (_, splits) => splits.map((at, place) => short.format(at) + (shift && place === splits.length - 1 ? `·${power(shift)}` : "")) }, note: "" };
}

const linesOf = (query) => query.lines.map((line, rank) => ({
  label: line.label || "all events", rank, at: new Map((line.bins || query.starts.map((_, place) => place)).map((bin, place) => [bin, place])),
  values: line.values.map((column) => column.map(number)),
}));

// Starts further apart than this are not joined by a line: in windows between them no group has a trend.
const gapOf = (query) => (query.joined > 1 || query.sample ? Math.max(1.5 * query.joined * query.slide, 3.5 * median(steps(query.starts))) : query.slide);
const steps = (starts) => starts.slice(1).map((start, place) => start - starts[place]);
const median = (values) => [...values].sort((one, other) => one - other)[values.length >> 1] || 1;
const colourOf = (line) => (line.rank < COLOURED ? COLOURS[line.rank] : "var(--rest)");

// Points that have no neighbour are drawn as dots, for a line needs two.
const alone = (u, series, shown) => {
  if (shown) return null;
  const data = u.data[series];
  return data.map((_, place) => place).filter((place) => data[place] !== null && (data[place - 1] ?? null) === null && (data[place + 1] ?? null) === null);
};

function resultCard(query) {
  const chart = el("div", { class: "chart", tabindex: "0", role: "group", "aria-label": `${query.name} over time` });
  const legend = el("div", { class: "legend" });
  const select = el("select", { "aria-label": `Aggregate of ${query.name}`, onchange: () => draw() }, ...query.measures.map((name, place) => el("option", { value: place, selected: place === query.first ? "" : null }, name)));
  const card = el("article", { class: "card", "data-query": query.name },
    el("div", { class: "top" }, el("h3", {}, query.name), query.measures.length > 1 ? select : el("span", { class: "soft" }, query.measures[0])),
    el("div", { class: "code pattern" }, query.pattern), chart, legend);
  const gap = gapOf(query), x = timeAxis(AXIS, FIRST, LAST);
  const places = query.starts.flatMap((start, bin) => (bin && start - query.starts[bin - 1] > gap ? [null, bin] : [bin])); // null breaks a line
  const xs = places.map((bin, place) => x.at(bin === null ? (query.starts[places[place - 1]] + query.starts[places[place + 1]]) / 2 : query.starts[bin]));
  let lines = null;

  function draw() {
    card.hidden = !state.shown.has(query.name);
    if (card.hidden) return;
    if (!query.rows) { unplot(chart, el("p", { class: "nothing" }, "No window of this query has a trend.")); return; }
    lines = lines || linesOf(query);
    const measure = Number(select.value || 0);
    const found = lines.filter((line) => line.label.toLowerCase().includes(state.search));
    const values = found.flatMap((line) => line.values[measure]).filter((value) => value !== null);
    const band = query.band && !state.search ? query.band[measure] : null;
    const edges = band ? [band.low, band.high].map((side) => side.map(number)) : [];
    const all = [...values, ...edges.flat().filter((value) => value !== null)];
    const y = all.length ? scale(all, state.log && !query.logarithms.includes(measure)) : null;
    if (!y) {
      unplot(chart, el("p", { class: "nothing" }, found.length ? (values.length ? "No value above 0: see the linear axis." : "All values are NULL.") : "No group that is drawn here has this name."));
      showLegend(found);
      return;
    }
    const on = (value) => (value ? y.of(value) : null);
    const drawn = [...found].reverse(); // the first ones lie on top
    plot(chart, {
      label: `${query.measures[measure]} of ${query.name}: ${found.length} of ${query.groups} groups`, height: 210, x, xs, y,
      places: places.map((bin, place) => bin ?? places[place - 1]),
      series: [
        ...drawn.map((line) => ({
          label: line.label, stroke: paint(colourOf(line)), width: line.rank < 3 ? 1.6 : 1.1, alpha: line.rank < COLOURED ? 1 : 0.4,
          points: { show: query.starts.length <= 40, size: 4, filter: alone },
          data: places.map((bin) => (bin !== null && line.at.has(bin) ? on(line.values[measure][line.at.get(bin)]) : null)),
        })),
        ...[...edges].reverse().map((side, below) => ({ width: 0, stroke: "transparent", data: places.map((bin) => (bin === null ? null : on(side[bin]) ?? (below && on(edges[1][bin]) !== null ? y.range[0] : null))) })),
      ],
      bands: band ? [{ series: [drawn.length + 1, drawn.length + 2], fill: () => css("--band") }] : [],
      show: (bin, left, top, pointed, near) => pointAt(bin, left, top, pointed, drawn[near], found, measure, band),
    });
    showLegend(found, y.note);
  }

  function pointAt(bin, left, top, pointed, chosen, found, measure, band) {
    for (const button of legend.querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.dataset.rank) === chosen?.rank));
    if (bin < 0) { hideTip(); return; }
    const here = found.filter((line) => line.at.has(bin)).map((line) => [line, line.values[measure][line.at.get(bin)]]);
    here.sort((one, other) => (other[1]?.parts[1] ?? -1e9) - (one[1]?.parts[1] ?? -1e9) || (other[1]?.parts[0] ?? -1) - (one[1]?.parts[0] ?? -1));
    const place = Math.max(0, here.findIndex(([line]) => line === chosen));
    const from = Math.max(0, Math.min(place - 4, here.length - 8));
    const rows = here.slice(from, from + 8).map(([line, value]) => [colourOf(line), line.label, value ? value.text : "NULL", line === chosen]);
    const until = query.joined > 1 ? query.starts[Math.min(bin + 1, query.starts.length - 1)] : query.ends ? query.ends[bin] : query.starts[bin] + query.within;
    const more = [here.length > 8 ? `${here.length - 8} more groups` : "", query.joined > 1 ? `largest of up to ${query.joined} windows that begin in this span` : "",
      band && band.high[bin] !== null ? `all ${query.sample ? "groups of the sample" : `${whole.format(query.groups)} groups`}: ${number(band.low[bin]).text} to ${number(band.high[bin]).text}` : ""].filter(Boolean).join("; ");
    showTip(left, top, spanText(query.starts[bin], Math.max(until, query.starts[bin]), AXIS), rows.length ? rows : [[null, "no trend in a group that is drawn", ""]], more);
    if (pointed === null) say(`${timeText(query.starts[bin], AXIS)}: ${here.slice(place, place + 1).map(([line, value]) => `${line.label} ${value ? value.text : "NULL"}`).join()}`);
  }

  function showLegend(found, note) {
    const by = query.groupedBy.join(", ");
    const keys = found.slice(0, COLOURED).map((line) => el("button", { "data-rank": line.rank, title: line.label, onclick: () => chart.plot && focusLine(chart.plot, found.length - 1 - found.indexOf(line)) },
      el("i", { class: "swatch", style: `background:${colourOf(line)}` }), line.label));
    const drawn = query.lines.length < query.groups ? `; ${whole.format(query.lines.length)} of ${whole.format(query.groups)} groups are drawn, those with the largest ${query.measures[query.first]}${query.band ? `; the band has all${query.sample ? " of the sample" : ""}` : ""}` : "";
    legend.replaceChildren(by ? `${by}:` : "", ...keys, found.length > COLOURED ? `+ ${found.length - COLOURED} more` : "",
      el("span", {}, `${whole.format(query.rows)} rows${query.sample ? `; ${query.sample}` : ""}${drawn}${query.joined > 1 ? `; a point is the largest of ${query.joined} windows` : ""}${note ? `; ${note}` : ""}`));
  }

  redraw.push(draw);
  return card;
}

const EDGES = DATA.queries.flatMap((query) => (query.rows ? [query.starts[0], query.starts.at(-1) + query.within] : []));
const EVENTS = DATA.events;
const EVENT_EDGES = EVENTS ? [EVENTS.first, EVENTS.first + EVENTS.length * EVENTS.types[0].counts.length] : [];
const FIRST = Math.min(...(EDGES.length ? EDGES : EVENT_EDGES)), LAST = Math.max(...(EDGES.length ? EDGES : EVENT_EDGES));
document.getElementById("charts").append(...DATA.queries.map(resultCard));

// ----------------------------------------------------------------------------------------------------- stacked bars

// Bars over bins of time. names, colours: of the kinds in each column.
function binnedBars(host, first, last, spans, columns, names, colours, label, unit) {
  stackedBars(host, {
    label, height: 200, x: timeAxis(AXIS, first, last), spans, columns, colours,
    show: (bin, left, top, pointed) => {
      if (bin < 0) { hideTip(); return; }
      const rows = names.map((name, kind) => [colours[kind], name, short.format(columns[bin][kind]), false]).filter((_, kind) => columns[bin][kind]);
      const total = columns[bin].reduce((one, other) => one + other, 0);
      showTip(left, top, spanText(...spans[bin], AXIS), rows.length ? rows : [[null, "nothing", ""]], names.length > 1 ? `${short.format(total)} ${unit} in all` : unit);
      say(`${timeText(spans[bin][0], AXIS)}: ${rows.map((row) => `${row[1]} ${row[2]}`).join(", ")}`);
    },
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
  redraw.push(() => binnedBars(host, EVENT_EDGES[0], EVENT_EDGES[1], spans, columns, names, COLOURS, "Events per minute, by type", "events a minute"));
}

// ------------------------------------------------------------------------------------------------ sharing decisions

const KINDS = { shared: "var(--c0)", merged: "var(--c2)", split: "var(--c1)", alone: "var(--rest)" };
const MADE = DATA.decisions;
const hidden = new Set(); // kinds of decisions that are not drawn

// With a filter on queries: what those share, and what is shared by nobody.
const setShown = (set) => !MADE.sets[set] || !MADE.sets[set].length || MADE.sets[set].some((name) => state.shown.has(name));

function binned(value, kinds) {
  const columns = Array.from({ length: MADE.bins }, () => new Array(kinds).fill(0));
  for (const sum of MADE.sums) if (setShown(sum[2]) && !hidden.has(sum[1])) value(columns[sum[0]], sum);
  return columns;
}

function decisionCharts() {
  const colours = MADE.kinds.map((kind) => KINDS[kind] || "var(--c3)");
  const spans = Array.from({ length: MADE.bins }, (_, bin) => [MADE.first + bin * MADE.length, MADE.first + (bin + 1) * MADE.length]);
  const edges = [MADE.first, MADE.first + MADE.bins * MADE.length];
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
    binnedBars(line, ...edges, spans, binned((column, sum) => { column[sum[1]] += sum[place]; }, MADE.kinds.length), MADE.kinds, colours, "Decisions over time", select.value);
    binnedBars(snapshots, ...edges, spans, binned((column, sum) => { column[0] += sum[5]; }, 1), ["snapshots"], ["var(--c5)"], "Snapshots created over time", "");
    burstStrip(bursts, colours);
    setTable();
  });
  document.getElementById("thinned").textContent = MADE.bursts.length < MADE.standsFor
    ? `The largest bursts of each type, decision and span of time: ${whole.format(MADE.bursts.length)} of ${whole.format(MADE.standsFor)}, in their order. The height is the number of events, on a logarithmic axis.`
    : `All ${whole.format(MADE.standsFor)} bursts in their order. The height is the number of events, on a logarithmic axis.`;
}

// A key whose entries hide and show their kind, in all charts of decisions.
function kindKey(colours) {
  return el("div", { class: "legend" }, ...MADE.kinds.map((name, kind) => el("button", { "data-kind": kind, "aria-pressed": "true", onclick: () => {
    if (!hidden.delete(kind)) hidden.add(kind);
    for (const button of document.querySelectorAll(`[data-kind="${kind}"]`)) button.setAttribute("aria-pressed", String(!hidden.has(kind)));
    refresh();
  } }, el("i", { class: "swatch", style: `background:${colours[kind]}` }), name)));
}

// A row of bars for each type, a bar for each burst, coloured by what was decided.
function burstStrip(host, colours) {
  const bursts = MADE.bursts.filter((burst) => setShown(burst[3]) && !hidden.has(burst[4]));
  const types = MADE.types, most = Math.log2(1 + Math.max(1, ...bursts.map((burst) => burst[5])));
  const base = (type) => types.length - 1 - type;
  const row = (type) => types[type].length > 12 ? `${types[type].slice(0, 11)}…` : types[type];
  plot(host, {
    label: `${bursts.length} bursts`, height: 36 + types.length * 46, nearest: false,
    x: { range: [-0.5, Math.max(bursts.length, 12) - 0.5], values: () => [], axis: { size: 4 } }, xs: bursts.map((_, place) => place),
    y: { range: [0, types.length], axis: { size: 84, splits: () => types.map((_, type) => base(type)), values: () => types.map((_, type) => row(type)), align: 2 } },
    series: types.flatMap((_, type) => colours.map((colour, kind) => ({
      fill: paint(colour), width: 0, fillTo: () => base(type), paths: uPlot.paths.bars({ size: [0.9, 14] }),
      data: bursts.map((burst) => (burst[2] === type && burst[4] === kind ? base(type) + 0.05 + 0.75 * Math.log2(1 + burst[5]) / most : null)),
    }))),
    show: (place, left, top, pointed) => {
      if (place < 0) { hideTip(); return; }
      const [pane, key, type, set, kind, b, n, g, k, created, propagated, shared, separate] = bursts[place];
      const rows = [[colours[kind], MADE.kinds[kind], MADE.types[type], true], [null, "partition", MADE.keys[key] || "all events"],
        [null, "events: burst, window, graphlet", `${whole.format(b)}, ${whole.format(n)}, ${whole.format(g)}`], [null, "queries that could share", whole.format(k)],
        [null, "snapshots created, carried", `${created}, ${propagated}`], [null, "cost: shared, separate", `${short.format(shared)}, ${short.format(separate)}`]];
      showTip(left, top, timeText(pane, AXIS), rows, MADE.sets[set].length ? `shared by ${MADE.sets[set].join(", ")}` : "");
      say(`${MADE.kinds[kind]}, ${b} events of ${MADE.types[type]}`);
    },
  });
}

function setTable() {
  const totals = new Map();
  for (const [, kind, set, count, events, created, benefit] of MADE.sums) {
    if (!setShown(set)) continue;
    const row = totals.get(set) || { bursts: 0, events: 0, created: 0, benefit: 0 };
    row.bursts += count; row.events += events; row.created += created; row.benefit += benefit;
    totals.set(set, row);
  }
  const name = (set) => (!MADE.sets[set] ? `${MADE.others} other sets of queries` : MADE.sets[set].join(", ") || "nobody");
  const rows = [...totals].sort(([, one], [, other]) => other.events - one.events).slice(0, 12);
  document.getElementById("sets").replaceChildren(el("table", {},
    el("tr", {}, el("th", {}, "shared by"), ...["bursts", "events", "snapshots created", "cost: separate minus shared"].map((text) => el("th", { class: "n" }, text))),
    ...rows.map(([set, row]) => el("tr", {}, el("td", {}, name(set)), ...[row.bursts, row.events, row.created].map((value) => el("td", { class: "n" }, whole.format(value))), el("td", { class: "n" }, short.format(row.benefit))))));
}

if (MADE) decisionCharts();
refresh();
