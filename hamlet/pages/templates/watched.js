
// Charts over bins of time whose edges are texts: bars, or lines through the newest values.
for (const host of document.querySelectorAll("[data-chart]")) {
  const { label, what, bars, lines, times } = DATA.charts[Number(host.dataset.chart)];
  const count = times.length - 1, spans = Array.from({ length: count }, (_, bin) => [bin, bin + 1]);
  const x = { at: (bin) => bin, time: false, range: [0, count], values: (_, splits) => splits.map((at) => (times[Math.round(at)] ?? "").replace(/^(\d{4}-\d\d-\d\d) /, "$1\n")), axis: { size: 38, space: 120, incrs: [1, 2, 5, 10, 20, 50, 100] } };
  const say = (bin, rows, left, top) => {
    showTip(left, top, `${times[bin]} to ${times[bin + 1]}`, rows);
    live.textContent = `${times[bin]}: ${rows.map((row) => `${row[1]} ${row[2]}`).join(", ")}`;
  };
  const drawBars = () => stackedBars(host, {
    label, height: 150, x, spans, columns: bars.map((value) => [value]), colours: ["var(--c0)"],
    show: (bin, left, top) => (bin < 0 ? hideTip() : say(bin, [[null, what, whole.format(bars[bin])]], left, top)),
  });
  const drawLines = () => {
    const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
    const low = Math.min(...values), high = Math.max(...values), room = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
    plot(host, {
      label, height: 150, x, xs: spans.map(([from]) => from + 0.5), y: { range: [low - room, high + room], axis: { values: (_, splits) => splits.map(short.format) } },
      series: lines.map((line, place) => ({ data: line.values, stroke: paint(`var(--c${place % 8})`), width: 1.5, spanGaps: true, points: { show: line.values.filter((value) => value !== null).length < 3, size: 5 } })),
      show: (bin, left, top, pointed, near) => {
        if (bin < 0) { hideTip(); return; }
        const rows = lines.map((line, place) => [`var(--c${place % 8})`, line.label, line.values[bin] === null ? "–" : short.format(line.values[bin]), place === near]).filter((row) => row[2] !== "–");
        say(bin, rows.length ? rows : [[null, "no value", ""]], left, top);
      },
    });
  };
  const draw = bars ? drawBars : drawLines;
  draw();
  new ResizeObserver(() => { if (host.plot && Math.abs(host.plot.width - Math.max(host.clientWidth, 240)) > 1) draw(); }).observe(host);
}
