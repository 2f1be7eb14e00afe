
// What all charts share: uPlot draws them (vendor/), its colours are those of the style. x is in seconds where times are dates.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const paint = (colour) => () => (colour.startsWith("var(") ? css(colour.slice(4, -1)) : colour);
const FONT = '11px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
const plots = new Set();
for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", () => { for (const each of plots) each.redraw(false); });

// The axis of time below a chart: { time, range, values }.
function timeAxis(axis, first, last) {
  const at = (ticks) => (axis.dates ? ticks / axis.perSecond : ticks);
  const values = (_, splits, place, space, step) => {
    let day = "";
    return splits.map((split) => {
      if (!axis.dates) return whole.format(split).replaceAll(",", " ");
      const date = new Date(split * 1000), text = timeText(split * axis.perSecond, axis);
      const name = step >= 28 * 86400 ? `${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}` : `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
      const shown = step >= 86400 ? name : name === day ? text.slice(11) : `${name} ${text.slice(11)}`;
      day = name;
      return shown;
    });
  };
  return { at, time: axis.dates, range: [at(first), at(Math.max(last, first + 1))], values, space: 100 };
}

// host: an element with the class "chart". chart: label; height; x: an axis; xs: places on it; y: { range, values, ... of an axis };
// series: [{ data, stroke, ... of uPlot }]; bands; show(place, x, y, line): says what is at a place (-1: nothing is pointed at), line: the
// number of the nearest series, or null where the keys went there.
function plot(host, { label, height, x, xs, y, series, bands = [], show, places = xs.map((_, place) => place), nearest = true }) {
  unplot(host);
  const line = { stroke: () => css("--line"), width: 1 };
  let current = -1, byKey = false, near = null;
  const say = (u) => {
    const place = u.cursor.left < 0 || u.cursor.idx === null || u.cursor.idx === undefined ? -1 : places[u.cursor.idx];
    current = place < 0 ? current : place;
    const box = u.over.getBoundingClientRect();
    show(place, box.left + u.cursor.left, box.top + u.cursor.top, byKey ? null : near, near);
  };
  const made = new uPlot({
    width: Math.max(host.clientWidth, 240), height, padding: [10, 36, 0, 0], legend: { show: false }, bands,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { x: { time: x.time, range: () => x.range }, y: { range: () => y.range } },
    axes: [
      { stroke: () => css("--soft"), font: FONT, size: 24, gap: 2, grid: { show: false }, ticks: { ...line, size: 4 }, border: { show: true, ...line }, space: 100, ...x.axis, values: x.values },
      { stroke: () => css("--soft"), font: FONT, size: 52, gap: 4, grid: { stroke: () => css("--grid"), width: 1 }, ticks: { show: false }, space: 32, ...y.axis },
    ],
    series: [{}, ...series.map(({ data, ...each }) => ({ spanGaps: false, points: { show: false }, ...each }))],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false }, focus: { prox: nearest ? 1e6 : -1 } },
    focus: { alpha: nearest ? 0.3 : 1 },
    hooks: { setCursor: [say], setSeries: [(_, place, { focus }) => { if (focus) near = place === null ? null : place - 1; }] },
  }, [xs, ...series.map((each) => each.data)], host);
  made.ctx.canvas.setAttribute("role", "img");
  made.ctx.canvas.setAttribute("aria-label", label);
  plots.add(made);
  host.plot = made;
  const go = (place) => {
    byKey = true;
    const at = places.indexOf(place), value = near === null ? null : made.data[near + 1][at];
    made.setCursor({ left: made.valToPos(xs[at], "x"), top: value === null || value === undefined ? made.over.clientHeight / 2 : made.valToPos(value, "y") });
    byKey = false;
  };
  const last = Math.max(...places);
  host.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9, PageUp: -10, PageDown: 10 }[event.key];
    if (step !== undefined && places.length) go(Math.max(0, Math.min(last, (current < 0 && step > 0 ? -1 : current) + step)));
    else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && nearest && current >= 0) focusLine(made, (near ?? 0) + (event.key === "ArrowUp" ? -1 : 1), () => go(current));
    else return;
    event.preventDefault();
  };
  host.onblur = host.onpointerleave = () => { made.setCursor({ left: -10, top: -10 }); hideTip(); };
  return made;
}

function focusLine(made, line, then) {
  const lines = made.series.length - 1;
  made.setSeries(1 + (line + lines) % lines, { focus: true });
  then?.();
}

function unplot(host, ...children) {
  if (host.plot) { plots.delete(host.plot); host.plot.destroy(); host.plot = null; }
  host.onkeydown = host.onblur = host.onpointerleave = null;
  host.replaceChildren(...children);
}

// Steps of an axis of whole numbers.
const WHOLE = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((each) => each * 10 ** power)).flat();

// Bars of several kinds, one on another. columns: for each bar the value of every kind; spans: from and to of each bar, on the axis.
function stackedBars(host, { label, height, x, spans, columns, colours, values, show }) {
  const sums = columns.map((column) => { let sum = 0; return column.map((value) => (sum += value)); });
  const most = Math.max(...sums.map((column) => column.at(-1) ?? 0), 1e-9);
  plot(host, {
    label, height, x, xs: spans.map(([from, to]) => (x.at(from) + x.at(to)) / 2), nearest: false, show,
    y: { range: [0, most * 1.04], axis: { values: (_, splits) => splits.map(values || short.format), ...(columns.flat().every(Number.isInteger) ? { incrs: WHOLE } : {}) } },
    series: colours.map((colour, kind) => ({
      data: sums.map((column) => column[kind]), fill: paint(colour), width: 0, paths: uPlot.paths.bars({ size: [0.94, 1e6, 1] }),
    })).reverse(),
  });
}
