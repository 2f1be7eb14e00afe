// Bars over time: point at one to see its span and count.
for (const chart of document.querySelectorAll("svg[data-policy]")) {
  const policy = DATA.policies[Number(chart.dataset.policy)];
  chart.addEventListener("pointermove", (event) => {
    const bar = event.target.closest("rect[data-bar]");
    if (!bar) { tip.hidden = true; return; }
    const each = policy.bars[Number(bar.dataset.bar)];
    showTip(event.clientX, event.clientY, `${each.first} to ${each.last}`, [[null, policy.what, String(each.count), false]]);
  });
  chart.addEventListener("pointerleave", () => { tip.hidden = true; });
}
