
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
