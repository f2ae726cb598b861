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
  whole(mine);
});

// Then on all rows: a process of its own works, and what an earlier one found is no longer asked for.
const everything = document.getElementById("whole");
let earlier = "";
const whole = later(async (mine) => {
  everything.textContent = place.dataset.working;
  const body = fields(form);
  body.set("earlier", earlier);
  try {
    earlier = (await ask("/promise/whole", body)).job;
    for (const job = earlier; job === earlier && mine === last;) {
      const said = await (await fetch(`/promise/whole/${job}`, { headers: { accept: "application/json" } })).json();
      if (said.state !== "running") {
        everything.textContent = said.lines.join(" ") || said.error?.what || "";
        everything.dataset.shown = String(mine);
        break;
      }
      await new Promise((done) => setTimeout(done, 400));
    }
  } catch (error) {
    everything.textContent = error.said?.what ?? "";
  }
}, 1200);

form.addEventListener("input", (event) => {
  const told = document.getElementById(`${event.target.id}-told`);
  if (told) told.textContent = Number(event.target.value).toLocaleString(document.documentElement.lang);
  show();
});
show();
