"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (query, at = document) => [...at.querySelectorAll(query)];
  const one = (query, at = document) => at.querySelector(query);
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const format = new Intl.NumberFormat(data.language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const fine = new Intl.NumberFormat(data.language, { minimumFractionDigits: 3, maximumFractionDigits: 3 });
  const lines = all("#lines tbody tr");
  const byNumber = new Map(lines.map((line) => [line.dataset.r, line]));
  const heads = all("#lines th");
  const off = { m: new Set(), g: new Set(), o: new Set() };
  all(".script").forEach((part) => { part.hidden = false; });

  // Choosing measures: every chart is there already, the fitting ones are shown.
  const value = (id) => document.getElementById(id)?.value;
  const show = () => {
    all(".plot").forEach((plot) => {
      const fits = ["loss", "risk", "metric", "protocol", "measure"].every(
        (name) => plot.dataset[name] === undefined || value(name) === undefined || plot.dataset[name] === value(name));
      plot.hidden = !fits;
      plot.classList.toggle("off", off.o.has(plot.dataset.o));
    });
    hide();
  };
  all(".controls select").forEach((select) => select.addEventListener("change", show));

  // Filters: what is unticked leaves the charts, the legends and the table.
  const search = document.getElementById("search");
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    all("g.s, .legend li").forEach((part) => {
      part.classList.toggle("off", off.m.has(part.dataset.m) || off.g.has(part.dataset.g));
    });
    lines.forEach((line) => {
      const text = words.length ? line.textContent.toLowerCase().replaceAll("\u00a0", " ").replaceAll("\u2060", "") : "";
      const away = ["m", "g", "o"].some((kind) => off[kind].has(line.dataset[kind])) || !words.every((word) => text.includes(word));
      line.classList.toggle("off", away);
      shown += away ? 0 : 1;
    });
    document.getElementById("shown").textContent = fill(data.words.shown, { shown, all: lines.length });
    show();
  };
  const boxes = all("#filters input");
  boxes.forEach((box) => box.addEventListener("change", () => {
    off[box.dataset.kind][box.checked ? "delete" : "add"](box.value);
    filter();
  }));
  document.getElementById("everything")?.addEventListener("click", () => {
    boxes.forEach((box) => { box.checked = true; });
    Object.values(off).forEach((set) => set.clear());
    search.value = "";
    filter();
  });
  search.addEventListener("input", filter);

  // Pointing: the nearest mark tells its figures, by pointer or by the arrow keys.
  const gapTexts = new Map();
  all(".plot use").forEach((mark) => {
    const title = one("title", mark);
    if (!title) return;
    if (mark.dataset.gap) gapTexts.set(mark, title.textContent);
    title.remove();
  });
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  const ring = document.createElementNS(one("svg").namespaceURI, "circle");
  ring.setAttribute("class", "ring");
  ring.setAttribute("r", "8");

  const settingText = (mark, plot) => {
    const told = data.settings[mark.dataset.s];
    const models = told.models.filter((_, at) => !off.o.has(String(at)));
    return [told.head, told.measures[plot.dataset.loss], told.measures[plot.dataset.risk], told.drop, ...models].join("\n");
  };
  const lineText = (mark, plot) => {
    const line = byNumber.get(mark.dataset.r);
    const cell = (key) => line.cells[heads.findIndex((head) => head.dataset.key === key)]?.textContent;
    const setting = [cell("method"), cell("k") === "–" ? null : "k\u00a0=\u00a0" + cell("k"), cell("guarantees") === "–" ? null : cell("guarantees")];
    const name = heads.find((head) => head.dataset.key === plot.dataset.metric).textContent.trim();
    const seeds = heads.find((head) => head.dataset.key === "seeds").textContent.trim();
    return [setting.filter(Boolean).join(", "), cell("model"), name + ": " + cell(plot.dataset.metric), seeds + ": " + cell("seeds")].join("\n");
  };
  const curveItems = (path, plot) => {
    const curve = data.curves[path.dataset.c];
    const measure = plot.dataset.measure;
    const points = curve.points[measure];
    const write = (number) => (measure === "loss" ? fine.format(number) : format.format(100 * number) + "%");
    return path.getAttribute("d").slice(1).split(/[ML]/).map((pair, at) => {
      const [x, y] = pair.split(" ").map(Number);
      const [round, number] = points[at];
      return { x, y, text: () => [curve.head, data.words.round + " " + round, data.measures[measure] + ": " + write(number)].join("\n") };
    });
  };
  const markItem = (mark, plot) => ({
    x: Number(mark.getAttribute("x")),
    y: Number(mark.getAttribute("y")),
    text: () => gapTexts.get(mark) ?? (mark.dataset.s ? settingText(mark, plot) : lineText(mark, plot)),
  });
  // Lines of items: left and right go along a line, up and down to the next one.
  const itemsOf = (plot) => all("g.s:not(.off)", plot).map((group) => {
    const path = one("path.c", group);
    const found = all("use", group).filter((mark) => mark.dataset.s || mark.dataset.r || mark.dataset.gap);
    return [...(path ? curveItems(path, plot) : []), ...found.map((mark) => markItem(mark, plot))];
  }).filter((items) => items.length);

  let at = null;
  function hide() { tip.hidden = true; ring.remove(); at = null; }
  const tell = (plot, item) => {
    const svg = one("svg[role]", plot);
    ring.setAttribute("cx", item.x);
    ring.setAttribute("cy", item.y);
    svg.append(ring);
    if (tip.parentNode !== plot) plot.append(tip);
    tip.textContent = item.text();
    tip.hidden = false;
    const point = new DOMPoint(item.x, item.y).matrixTransform(svg.getScreenCTM());
    const frame = plot.getBoundingClientRect();
    const left = point.x - frame.left, top = point.y - frame.top;
    const room = frame.width - tip.offsetWidth - 4;
    tip.style.left = Math.max(0, Math.min(left + 14, room)) + "px";
    tip.style.top = (left + 14 > room ? top + 16 : Math.max(0, top - 10)) + "px";
  };
  all(".plot").forEach((plot) => {
    const svg = one("svg[role]", plot);
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", one("title", svg).textContent);
    plot.addEventListener("pointermove", (event) => {
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const near = itemsOf(plot).map((items) => items
        .map((item) => ({ item, distance: Math.hypot(item.x - place.x, item.y - place.y) }))
        .reduce((first, second) => (second.distance < first.distance ? second : first)))
        .filter((found) => found.distance < 22).sort((first, second) => first.distance - second.distance);
      const best = near[0]?.item;
      // Marks that lie on one another are told together.
      const same = near.map((found) => found.item).filter((item) => Math.hypot(item.x - best.x, item.y - best.y) < 3).slice(0, 3);
      if (best) tell(plot, { ...best, text: () => same.map((item) => item.text()).join("\n\n") }); else if (document.activeElement !== plot) hide();
    });
    plot.addEventListener("pointerleave", () => { if (document.activeElement !== plot) hide(); });
    plot.addEventListener("focus", () => {
      if (!plot.matches(":focus-visible")) return;
      at = [0, 0];
      const items = itemsOf(plot);
      if (items.length) tell(plot, items[0][0]);
    });
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
      if (event.key === "Escape") { hide(); return; }
      if (!(event.key in moves)) return;
      const items = itemsOf(plot);
      if (!items.length) return;
      event.preventDefault();
      const [line, along] = at ?? [0, -1];
      const next = (line + moves[event.key][0] + items.length) % items.length;
      const length = items[next].length;
      at = [next, next === line ? (along + moves[event.key][1] + length) % length : Math.min(along, length - 1)];
      tell(plot, items[at[0]][at[1]]);
    });
  });

  // Sorting: by the numbers behind the texts; what has none stands last.
  const names = data.table.columns;
  const compare = new Intl.Collator(data.language, { numeric: true }).compare;
  heads.forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const column = names.indexOf(head.dataset.key);
      const of = (line) => data.table.rows[line.dataset.r][column];
      const body = one("#lines tbody");
      const sorted = [...lines].sort((first, second) => {
        const a = of(first), b = of(second);
        if (a === null || b === null) return (a === null) - (b === null);
        const order = typeof a === "number" ? a - b : compare(a, b);
        return down ? -order : order;
      });
      body.append(...sorted);
    });
  });

  // Saving: every line of the table as plain numbers.
  const save = (text, type, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const quote = (cell) => {
    if (cell === null) return "";
    if (typeof cell === "number") return String(cell);
    // A text that a spreadsheet would take for a formula is kept a text.
    return '"' + (/^[=+\-@\t\r]/.test(cell) ? "'" : "") + cell.replaceAll('"', '""') + '"';
  };
  document.getElementById("csv").addEventListener("click", () => {
    const text = [names, ...data.table.rows].map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
    save(text, "text/csv", "study.csv");
  });
  document.getElementById("json").addEventListener("click", () => {
    const rows = data.table.rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]])));
    save(JSON.stringify(rows, null, 1), "application/json", "study.json");
  });

  filter();
})();
