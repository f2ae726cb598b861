// Edges of bands on a line of numbers or days: dragged by pointer, moved by arrow keys; the field below always says the same.
const editor = document.getElementById("bands-editor"), strip = editor.querySelector(".bands"), field = document.getElementById("edges");
const low = Number(editor.dataset.low), high = Number(editor.dataset.high);
const days = editor.dataset.kind === "days", DAY = 864e5;
// Days are counted from the first of 1970, and written 2024-03-07; as the column writes them they are read too.
const read = (part) => (days ? day(part) : Number(part.replace(",", ".")));
const told = (value) => (days ? new Date(value * DAY).toISOString().slice(0, 10) : String(value));
const whole = Number.isInteger(low) && Number.isInteger(high);
const step = whole ? 1 : (high - low) / 200 || 1;
const tidy = (value) => (whole ? Math.round(value) : Number(value.toPrecision(6)));
const clamp = (value) => Math.min(high, Math.max(low, value));

function day(part) {
  if (/^\d{4}-\d\d-\d\d$/.test(part)) return Date.parse(part) / DAY;
  const names = [];
  const plain = editor.dataset.form.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = plain.replace(/%([dmY])/g, (_, name) => { names.push(name); return name === "Y" ? "(\\d{4})" : "(\\d{1,2})"; });
  const found = new RegExp(`^${pattern}$`).exec(part);
  if (!found || names.length !== 3) return NaN;
  const at = Object.fromEntries(names.map((name, place) => [name, Number(found[place + 1])]));
  return Date.UTC(at.Y, at.m - 1, at.d) / DAY;
}

function edges() {
  return [...new Set(field.value.split(/\s+/).filter(Boolean).map(read).filter(Number.isFinite))].sort((a, b) => a - b);
}

function write(values) {
  field.value = [...new Set(values)].sort((a, b) => a - b).map(told).join(" ");
}

function draw(focused = null) {
  strip.querySelectorAll("button").forEach((one) => one.remove());
  for (const value of edges()) {
    const grip = Object.assign(document.createElement("button"), { type: "button", className: "grip" });
    grip.setAttribute("role", "slider");
    grip.setAttribute("aria-label", editor.dataset.edge);
    grip.setAttribute("aria-valuemin", low);
    grip.setAttribute("aria-valuemax", high);
    grip.setAttribute("aria-valuenow", value);
    grip.setAttribute("aria-valuetext", told(value));
    grip.dataset.value = value;
    place(grip, value);
    grip.addEventListener("keydown", (event) => {
      const by = { ArrowRight: step, ArrowUp: step, ArrowLeft: -step, ArrowDown: -step, PageUp: 10 * step, PageDown: -10 * step }[event.key];
      if (by) { event.preventDefault(); move(Number(grip.dataset.value), tidy(clamp(Number(grip.dataset.value) + by))); }
      if (event.key === "Delete" || event.key === "Backspace") { event.preventDefault(); write(edges().filter((one) => one !== Number(grip.dataset.value))); draw(); strip.querySelector("button")?.focus(); }
    });
    grip.addEventListener("pointerdown", (event) => { grip.setPointerCapture(event.pointerId); grip.dataset.held = "yes"; });
    grip.addEventListener("pointermove", (event) => {
      if (!grip.dataset.held) return;
      const box = strip.getBoundingClientRect();
      const value = tidy(clamp(low + (high - low) * (event.clientX - box.left) / box.width));
      const before = Number(grip.dataset.value);
      write(edges().map((one) => (one === before ? value : one)));
      grip.dataset.value = value;
      grip.setAttribute("aria-valuenow", value);
      grip.setAttribute("aria-valuetext", told(value));
      place(grip, value);
    });
    grip.addEventListener("pointerup", () => { delete grip.dataset.held; draw(Number(grip.dataset.value)); });
    strip.append(grip);
    if (value === focused) grip.focus();
  }
}

function place(grip, value) {
  // The policy of the page forbids styles in markup; a script may still set one.
  grip.style.left = `${100 * (value - low) / (high - low || 1)}%`;
}

function move(from, to) {
  write(edges().map((one) => (one === from ? to : one)));
  draw(to);
}

strip.addEventListener("click", (event) => {
  if (event.target.closest("button")) return;
  const box = strip.getBoundingClientRect();
  const value = tidy(clamp(low + (high - low) * (event.clientX - box.left) / box.width));
  write([...edges(), value]);
  draw(value);
});
field.addEventListener("change", () => draw());
draw();
