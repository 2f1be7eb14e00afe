
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
