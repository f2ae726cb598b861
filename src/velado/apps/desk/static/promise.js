// The sliders speak, and what the promise would cost is asked for whenever one moves.
import { ask, fields, later } from "/static/desk.js";

const form = document.getElementById("promise"), place = document.getElementById("preview");
let last = 0;

const show = later(async () => {
  const mine = ++last;
  place.setAttribute("aria-busy", "true");
  try {
    const said = await ask("/promise/preview", fields(form));
    if (mine !== last) return;
    place.replaceChildren(...(said.lines ?? []).map((line) => Object.assign(document.createElement("p"), { textContent: line })));
  } catch (error) {
    if (mine !== last) return;
    const said = error.said ?? {};
    place.textContent = [said.what, said.why, said.fix].filter(Boolean).join(" ");
  }
  place.removeAttribute("aria-busy");
  place.dataset.shown = String(mine);
});

form.addEventListener("input", (event) => {
  const told = document.getElementById(`${event.target.id}-told`);
  if (told) told.textContent = event.target.value;
  show();
});
show();
