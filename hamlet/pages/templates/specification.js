// Pointing at a stream says what it keeps.
for (const node of document.querySelectorAll(".graph [data-tip]")) {
  const [title, ...lines] = node.dataset.tip.split("\n");
  node.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, title, lines.map((line) => [null, line, "", false])));
  node.addEventListener("pointerleave", hideTip);
}
