
// Picking a query marks it in every drawing; picking it again shows all.
let picked = null;

function pick(place) {
  picked = picked === place ? null : place;
  for (const button of document.querySelectorAll(".pick")) button.setAttribute("aria-pressed", String(button.dataset.pick === picked));
  for (const node of document.querySelectorAll(".group [data-q]")) {
    const has = node.dataset.q.split(" ").includes(picked);
    node.classList.toggle("off", picked !== null && !has);
    node.classList.toggle("on", picked !== null && has);
  }
  for (const card of document.querySelectorAll(".query")) card.classList.toggle("off", picked !== null && card.dataset.place !== picked);
  say(picked === null ? "all queries" : DATA.queries[picked]);
}

for (const button of document.querySelectorAll(".pick")) button.addEventListener("click", () => pick(button.dataset.pick));

function describe(node, x, y) {
  const [title, ...lines] = node.dataset.tip.split("\n");
  const box = node.getBoundingClientRect();
  showTip(x ?? box.right, y ?? box.top + box.height / 2, title, lines.slice(0, 14).map((line) => [null, line, ""]), lines.length > 14 ? `and ${lines.length - 14} more` : "");
}

for (const node of document.querySelectorAll("[data-tip]")) {
  if (!node.dataset.tip) continue;
  node.addEventListener("pointermove", (event) => describe(node, event.clientX, event.clientY));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", () => { if (node.matches(":focus-visible")) describe(node); });
  node.addEventListener("blur", hideTip);
}
