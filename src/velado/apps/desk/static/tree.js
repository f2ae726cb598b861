// A tree of which only open branches are in the page: 5,000 values stay fluent. Everything works by keyboard too.
import { ask, token } from "/static/desk.js";

const editor = document.getElementById("tree-editor"), said = document.getElementById("said"), label = document.getElementById("label");
const tree = editor?.querySelector("[role=tree]");
const marked = new Set();
const number = editor?.dataset.number;
const kept = `velado-open-${location.pathname}`;
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

async function edit(what, under = "", name = label.value) {
  const ids = marked.size ? [...marked] : document.activeElement?.dataset?.id ? [document.activeElement.dataset.id] : [];
  if (!ids.length) { said.textContent = editor.dataset.ask; return; }
  const body = new URLSearchParams({ csrf: token, state: editor.dataset.state, what, under, label: name });
  ids.forEach((id) => body.append("node", id));
  try {
    const reply = await ask(`/hierarchies/${number}/edit`, body);
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
  editor.dataset.ready = "yes";
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
      F2: () => label.focus(),
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
  for (const button of editor.querySelectorAll("[data-what]")) {
    let before = null;
    button.addEventListener("mousedown", () => { before = document.activeElement; });
    button.addEventListener("click", () => { if (before?.dataset?.id && !marked.size) mark(before); edit(button.dataset.what); });
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
