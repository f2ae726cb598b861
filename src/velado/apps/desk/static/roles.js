// Who can be told apart is counted anew whenever a role changes.
import { ask, fields, later } from "/static/desk.js";

const form = document.getElementById("roles");
let last = 0;

const count = later(async () => {
  const mine = ++last;
  const said = await ask("/roles/count", fields(form)).catch(() => null);
  if (said === null || mine !== last) return;
  document.getElementById("all").textContent = said.all.alone;
  document.getElementById("people").textContent = said.all.people;
  document.getElementById("all-share").value = said.all.share;
  document.getElementById("quasi").textContent = said.quasi.alone;
  form.dataset.counted = String(mine);
});
form.addEventListener("change", count);
