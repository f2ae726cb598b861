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

// What may name people is published as it is with a reason alone: the browser then asks for it on its card.
function ask_why() {
  for (const reason of form.querySelectorAll("input[name^='reason-']")) {
    const number = reason.name.slice(7), held = form.elements[`hold-${number}`].checked;
    reason.required = !held && ["sensitive", "other"].includes(form.elements[`role-${number}`].value);
  }
}
form.addEventListener("change", ask_why);
ask_why();
