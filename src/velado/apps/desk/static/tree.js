// A tree of which only open branches are in the page: 5,000 values stay fluent. Everything works by keyboard too.
import { ask, token } from "/static/desk.js";

const editor = document.getElementById("tree-editor"), said = document.getElementById("said"), label = document.getElementById("label");
const tree = editor?.querySelector("[role=tree]");
const marked = new Set();
let current = null, renamed = null; // the line that had the focus last, and the one that the field is to rename
const number = editor?.dataset.number;
const kept = `velado-open-${location.pathname}`;
const here = `velado-at-${location.pathname}`;
const opened = new Set(JSON.parse(sessionStorage.getItem(kept) ?? "[]"));

function item(node, level) {
  const line = document.createElement("li");
  line.setAttribute("role", "treeitem");
  line.setAttribute("aria-level", String(level));
  line.setAttribute("aria-selected", "false");
  line.tabIndex = -1;
  line.draggable = true;
  line.dataset.id = node.id;
  line.dataset.label = node.label;
  const text = document.createElement("bdi");
  text.textContent = node.label.length > 80 ? node.label.slice(0, 79) + "…" : node.label;
  const words = node.title ? [Object.assign(document.createElement("span"), { className: "title", textContent: ` ${node.title}` })] : [];
  if (node.open) {
    line.setAttribute("aria-expanded", "false");
    const turn = Object.assign(document.createElement("button"), { type: "button", className: "turn", textContent: "▸", tabIndex: -1 });
    turn.setAttribute("aria-hidden", "true");
    turn.addEventListener("click", (event) => { event.stopPropagation(); flip(line); });
    const amount = Object.assign(document.createElement("small"), { textContent: ` ${node.leaves}` });
    line.append(turn, text, ...words, amount);
  } else line.append(text, ...words);
  return line;
}

async function fill(list, under, level, from = 0) {
  const reply = await fetch(`/hierarchies/${number}/nodes?under=${under}&from=${from}`, { headers: { accept: "application/json" } });
  const found = await reply.json();
  // The hierarchy changed meanwhile, in another tab: the numbers of its branches are others.
  if (!reply.ok) { said.textContent = [found.what, found.why, found.fix].filter(Boolean).join(" "); return; }
  for (const node of found.nodes) {
    const line = item(node, level);
    list.append(line);
    if (node.open && opened.has(node.label)) await open(line);
  }
  if (found.more) {
    const more = document.createElement("li");
    more.setAttribute("role", "none");
    const button = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: editor.dataset.more.replace("{n}", found.more) });
    button.addEventListener("click", async () => { more.remove(); await fill(list, under, level, found.next); });
    more.append(button);
    list.append(more);
  }
}

async function open(line) {
  if (line.getAttribute("aria-expanded") !== "false") return;
  line.setAttribute("aria-expanded", "true");
  line.querySelector(".turn").textContent = "▾";
  const list = document.createElement("ul");
  list.setAttribute("role", "group");
  line.append(list);
  remember(line.dataset.label, true);
  await fill(list, line.dataset.id, Number(line.getAttribute("aria-level")) + 1);
}

function close(line) {
  if (line.getAttribute("aria-expanded") !== "true") return;
  line.setAttribute("aria-expanded", "false");
  line.querySelector(".turn").textContent = "▸";
  line.querySelector("ul").remove();
  remember(line.dataset.label, false);
}

const flip = (line) => (line.getAttribute("aria-expanded") === "true" ? close(line) : open(line));

function remember(name, yes) {
  yes ? opened.add(name) : opened.delete(name);
  sessionStorage.setItem(kept, JSON.stringify([...opened]));
}

function mark(line) {
  const id = line.dataset.id;
  marked.has(id) ? marked.delete(id) : marked.add(id);
  line.classList.toggle("picked", marked.has(id));
  line.setAttribute("aria-selected", String(marked.has(id)));
}

// An edit loads the page anew: who works by keyboard goes on where the edit was.
function stay(name) {
  if (name) sessionStorage.setItem(here, name);
}

function back() {
  const name = sessionStorage.getItem(here);
  sessionStorage.removeItem(here);
  const line = name && [...tree.querySelectorAll("[role=treeitem]")].find((one) => one.dataset.label === name);
  if (line) focus(line);
}

async function edit(what, under = "", name = label.value, ids = marked.size ? [...marked] : current ? [current.dataset.id] : []) {
  if (!ids.length) { said.textContent = editor.dataset.ask; return; }
  const body = new URLSearchParams({ csrf: token, state: editor.dataset.state, what, under, label: name });
  ids.forEach((id) => body.append("node", id));
  try {
    const reply = await ask(`/hierarchies/${number}/edit`, body);
    stay(what === "move" ? tree.querySelector(`[data-id="${under}"]`)?.dataset.label : name);
    location.assign(reply.go);
  } catch (error) {
    const told = error.said ?? {};
    said.textContent = [told.what, told.why, told.fix].filter(Boolean).join(" ");
  }
}

function step(line, by) {
  const lines = [...tree.querySelectorAll("[role=treeitem]")];
  const next = lines[lines.indexOf(line) + by];
  if (next) focus(next);
}

function focus(line) {
  tree.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
  line.tabIndex = 0;
  line.focus();
}

if (tree && editor.dataset.root !== "") {
  await fill(tree, editor.dataset.root, 1);
  tree.querySelector("[role=treeitem]")?.setAttribute("tabindex", "0");
  back();
  editor.dataset.ready = "yes";
  tree.addEventListener("focusin", (event) => { current = event.target.closest("[role=treeitem]") ?? current; });
  tree.addEventListener("click", (event) => {
    const line = event.target.closest("[role=treeitem]");
    if (line && !event.target.closest("button")) { focus(line); mark(line); }
  });
  tree.addEventListener("keydown", (event) => {
    const line = event.target.closest("[role=treeitem]");
    if (!line || event.target.tagName === "INPUT") return;
    const keys = {
      ArrowDown: () => step(line, 1),
      ArrowUp: () => step(line, -1),
      ArrowRight: () => open(line),
      ArrowLeft: () => (line.getAttribute("aria-expanded") === "true" ? close(line) : line.parentElement.closest("[role=treeitem]") && focus(line.parentElement.closest("[role=treeitem]"))),
      " ": () => mark(line),
      Enter: () => (line.hasAttribute("aria-expanded") ? flip(line) : mark(line)),
      m: () => edit("move", line.dataset.id),
      F2: () => { renamed = line; label.value = line.dataset.label; label.focus(); label.select(); },
    };
    if (keys[event.key]) { event.preventDefault(); event.stopPropagation(); keys[event.key](); }
  });
  tree.addEventListener("dragstart", (event) => {
    const line = event.target.closest("[role=treeitem]");
    if (!marked.has(line.dataset.id)) mark(line);
    event.dataTransfer.setData("text/plain", [...marked].join(" "));
    event.stopPropagation();
  });
  tree.addEventListener("dragover", (event) => {
    event.preventDefault();
    tree.querySelector(".over")?.classList.remove("over");
    event.target.closest("[role=treeitem]")?.classList.add("over");
  });
  tree.addEventListener("drop", (event) => {
    event.preventDefault();
    const line = event.target.closest("[role=treeitem][aria-expanded]");
    if (line) edit("move", line.dataset.id);
  });
  // Enter in the field does what brought a person there: F2 renames its line, marked lines become a group.
  label.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { renamed = null; label.value = ""; current?.focus(); }
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (renamed) edit("rename", "", label.value, [renamed.dataset.id]);
    else if (marked.size) edit("group");
    else said.textContent = editor.dataset.ask;
  });
  for (const button of editor.querySelectorAll("[data-what]")) {
    const only = button.dataset.what === "rename" ? () => (renamed ? [renamed.dataset.id] : undefined) : () => undefined;
    button.addEventListener("click", () => edit(button.dataset.what, "", label.value, only()));
  }
}

document.getElementById("levels-file")?.addEventListener("change", async (event) => {
  const file = event.target.files[0];
  if (file) document.getElementById("levels").value = await file.text();
});

document.addEventListener("keydown", (event) => {
  const writing = event.target.closest?.("input, textarea, select");
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z" && !writing) {
    const form = document.getElementById("undo");
    if (form) { event.preventDefault(); form.requestSubmit(); }
  }
});
