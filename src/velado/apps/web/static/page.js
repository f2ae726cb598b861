"use strict";
(function () {
  const words = JSON.parse(document.getElementById("words").textContent);
  const lang = document.documentElement.lang;
  const by = (id) => document.getElementById(id);
  const KEY = "velado-token";
  let token = sessionStorage.getItem(KEY);
  let datasets = [];
  let pending = 0;

  const say = (key, values = {}) =>
    Object.entries(values).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, value), words[key]);
  const number = (value) =>
    value === null || value === undefined ? "–" : Number(value).toLocaleString(lang, { maximumSignificantDigits: 6 });

  function make(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function table(caption, head, rows) {
    const made = make("table", null);
    if (caption) made.append(make("caption", caption));
    const top = make("tr", null);
    head.forEach((text) => top.append(make("th", text, { scope: "col" })));
    const thead = make("thead", null);
    thead.append(top);
    const body = make("tbody", null);
    for (const row of rows) {
      const line = make("tr", null);
      for (const cell of row) {
        if (cell instanceof Node) { const box = make("td", null); box.append(cell); line.append(box); }
        else line.append(make("td", String(cell), typeof cell === "string" && /^[\d–−-]/.test(cell) ? { class: "number" } : {}));
      }
      body.append(line);
    }
    made.append(thead, body);
    const scroll = make("div", null, { class: "scroll", tabindex: "0", role: "group", "aria-label": caption || head.join(", ") });
    scroll.append(made);
    return scroll;
  }

  function show(problem) {
    const box = by("error");
    box.replaceChildren(make("h2", words.error), make("p", problem.what),
      make("p", `${words.why}: ${problem.why}`), make("p", `${words.fix}: ${problem.fix}`));
    box.hidden = false;
    box.focus();
  }

  async function call(method, path, body) {
    let reply, found;
    busy(1);
    try {
      reply = await fetch(path, {
        method, cache: "no-store", credentials: "omit",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      found = await reply.json();
    } catch {
      throw { what: words.offline, why: words.offline_why, fix: words.offline_fix, code: "offline" };
    } finally {
      busy(-1);
    }
    if (!reply.ok) throw found;
    return found;
  }

  function busy(change) {
    pending += change;
    by("busy").textContent = pending ? words.working : "";
    for (const id of ["price", "go"]) by(id).disabled = pending > 0;
  }

  const guarded = (job) => async (event) => {
    if (event) event.preventDefault();
    by("error").hidden = true;
    try { await job(event); } catch (problem) {
      if (!problem || !problem.what) throw problem;
      if (problem.code === "token") leave();
      show(problem);
    }
  };

  const chosen = () => datasets.find((one) => one.name === by("dataset").value);

  async function enter() {
    datasets = (await call("GET", "/v1/datasets")).datasets;
    sessionStorage.setItem(KEY, token);
    by("dataset").replaceChildren(...datasets.map((one) => make("option", one.title, { value: one.name })));
    by("login").hidden = true;
    by("work").hidden = false;
    await choose();
    by("question").focus();
  }

  function leave() {
    sessionStorage.removeItem(KEY);
    token = null;
    by("token").value = "";
    by("work").hidden = true;
    by("login").hidden = false;
    for (const id of ["answer", "priced"]) { by(id).replaceChildren(); by(id).hidden = true; }
    by("token").focus();
  }

  async function choose() {
    const one = chosen();
    if (!one) return;
    const promise = one.guarantee;
    by("promise").textContent = say(one.mode === "groups" ? "promise_groups" : "promise_strict", {
      column: promise.column, rows: promise.most_rows, definition: "epsilon" in promise ? words.pure : words.zcdp,
    });
    if (promise.dependence) by("promise").append(make("strong", " " + say("promise_if", { dependence: promise.dependence })));
    for (const text of promise.warnings || []) by("promise").append(make("strong", " " + text, { lang: "en" }));
    by("columns").replaceChildren(table("", [words.column, words.kind, words.range, words.groupable],
      one.columns.map((column) => [column.name, words[column.kind] || column.kind || "–", range(column),
        column.group_by ? words.yes : words.no])));
    const numeric = one.columns.filter((column) => column.kind === "numeric" && column.bounds);
    const keys = one.columns.filter((column) => column.group_by);
    by("of").replaceChildren(make("option", words.every_row, { value: "" }), ...numeric.map((c) => make("option", c.name)));
    by("by").replaceChildren(make("option", words.nothing, { value: "" }), ...keys.map((c) => make("option", c.name)));
    by("spend-hint").textContent = say("spend_hint", { each: number(fraction(one.each)) });
    by("sql").value = `SELECT COUNT(*) FROM ${one.name}`;
    for (const id of ["answer", "priced"]) by(id).hidden = true;
    await refresh();
  }

  function range(column) {
    if (column.bounds) {
      const ends = `${number(column.bounds[0])} … ${number(column.bounds[1])}`;
      return column.step ? `${ends}, ${say("steps", { step: number(column.step) })}` : ends;
    }
    if (column.values) {
      const more = column.number_of_values - 8;
      return column.values.slice(0, 8).join(", ") + (more > 0 ? `, ${say("and_more", { count: more })}` : "");
    }
    return "";
  }

  const fraction = (text) => { const [over, under] = String(text).split("/"); return Number(over) / Number(under || 1); };

  function build() {
    const quote = (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
    const key = by("by").value, of = by("of").value;
    const what = of === "" ? "COUNT(*)" : `${by("what").value}(${quote(of)})`;
    by("sql").value = `SELECT ${key ? quote(key) + ", " : ""}${what} FROM ${by("dataset").value}` +
      (key ? ` GROUP BY ${quote(key)}` : "");
    by("sql").focus();
  }

  function request() {
    const spend = by("spend").value.trim().replace(",", ".");
    const body = { dataset: by("dataset").value, sql: by("sql").value, confidence: Number(by("confidence").value) };
    if (spend) body.spend = spend;
    return body;
  }

  async function price() {
    const found = await call("POST", "/v1/price", request());
    const box = by("priced");
    const left = found.left.about, cost = found.cost.about;
    box.replaceChildren(make("h2", words.price_title));
    if (found.stored) box.append(make("p", words.answer_stored));
    else if (!found.plan.draws.length) box.append(make("p", words.price_free));
    else {
      box.append(make("p", say("price_cost", { measure: found.cost.measure, cost: number(cost), left: number(left) })));
      box.append(make("p", found.enough ? words.price_enough : words.price_short, found.enough ? {} : { class: "short" }));
    }
    if (found.plan.draws.length) {
      box.append(table("", [words.draw, words.mechanism, words.sensitivity, words.scale, words.charge],
        found.plan.draws.map((draw) => [draw.need, draw.mechanism, number(draw.sensitivity), number(draw.scale),
          number(fraction(draw.charge))])));
    }
    box.hidden = false;
  }

  async function ask() {
    const body = request();
    const found = await call("POST", "/v1/answers", body);
    const box = by("answer");
    const names = found.columns.map((column) => column.name);
    const values = found.how.values;
    const keys = names.filter((name) => !values.some((v) => [v, v + "_low", v + "_high"].includes(name)));
    const level = (found.how.confidence * 100).toLocaleString(lang) + " %";
    const cell = (row, name) => row[names.indexOf(name)];
    const label = (row) => keys.map((key) => cell(row, key) ?? words.missing_key).join(" · ");
    const span = (row, value) => cell(row, value + "_low") === null ? "–"
      : `${number(cell(row, value + "_low"))} … ${number(cell(row, value + "_high"))}`;
    box.replaceChildren(make("h2", words.answer));
    if (found.rows.length === 1 && values.length === 1) {
      const big = make("p", null, { class: "value" });
      big.append(make("strong", number(cell(found.rows[0], values[0]))), make("span", ` ${say("interval", { level })}: ${span(found.rows[0], values[0])}`));
      box.append(big);
    } else {
      box.append(table("", [...keys, ...values.flatMap((v) => [v, say("interval", { level })])],
        found.rows.map((row) => [...keys.map((key) => cell(row, key) ?? words.missing_key),
          ...values.flatMap((v) => [number(cell(row, v)), span(row, v)])])));
    }
    for (const value of values) {
      const rows = found.rows.map((row) => ({
        label: label(row) || value, value: cell(row, value), low: cell(row, value + "_low"), high: cell(row, value + "_high"),
      }));
      const text = rows.slice(0, window.chart.most).map((row) => `${row.label} ${number(row.value)}`).join("; ");
      const picture = window.chart(value, rows, say("chart_of", { name: value, text }));
      if (picture) {
        const figure = make("figure", null);
        figure.append(picture, make("figcaption", value + (rows.length > window.chart.most ? ". " + say("chart_cut", { count: window.chart.most }) : "")));
        box.append(figure);
      }
    }
    const ranks = found.how.plan.draws.filter((draw) => draw.rank_error);
    if (ranks.length) {
      const rows = Math.max(...ranks.map((draw) => draw.rank_error.rows));
      box.append(make("p", say("rank", { rows: number(rows), level: (ranks[0].rank_error.confidence * 100).toLocaleString(lang) + " %" }), { class: "hint" }));
    }
    box.append(make("p", words.noisy, { class: "hint" }));
    box.append(make("p", found.stored ? words.answer_stored : say("answer_cost", {
      measure: found.cost.measure, cost: number(found.cost.about.spent), left: number(found.cost.about.left) })));
    box.append(make("p", body.sql, { class: "asked" }));
    by("priced").hidden = true;
    box.hidden = false;
    await refresh();
    box.focus();
  }

  async function refresh() {
    const name = by("dataset").value;
    const [all, asked] = await Promise.all([
      call("GET", "/v1/budget"), call("GET", "/v1/answers?most=50&dataset=" + encodeURIComponent(name))]);
    const one = all.budgets.find((budget) => budget.dataset === name);
    by("who").firstElementChild.textContent = say("you_are", { analyst: one.you.analyst, role: words[one.you.role] });
    const line = say("budget_line", { spent: number(one.about.spent), total: number(one.budget.about),
      measure: one.budget.measure, left: number(one.about.left) });
    const meter = make("meter", line, { min: 0, max: one.budget.about, value: one.about.spent, "aria-label": words.budget, title: line });
    const parts = [meter, make("p", line)];
    const own = number(one.you.about.spent);
    parts.push(make("p", one.you.cap === null ? say("budget_you", { spent: own })
      : say("budget_cap", { spent: own, cap: number(one.you.about.cap) })));
    if (one.budget.implies) parts.push(make("p", say("implies", { epsilon: number(one.budget.implies.epsilon), delta: number(one.budget.implies.delta) }), { class: "hint" }));
    if (one.by_analyst) {
      const people = [...new Set([...Object.keys(one.by_analyst), ...Object.keys(one.caps)])].sort();
      parts.push(table(words.everybody, [words.analyst, words.spent, words.share], people.map((who) =>
        [who, number(fraction(one.by_analyst[who] || 0)), who in one.caps ? number(fraction(one.caps[who])) : "–"])));
    }
    by("budget").replaceChildren(...parts);
    const list = make("ol", null, { class: "history" });
    for (const entry of asked.answers) {
      const again = make("button", entry.sql, { type: "button", class: "plain", title: words.again });
      again.addEventListener("click", guarded(async () => {
        by("sql").value = entry.sql;
        by("spend").value = entry.spend || "";
        await price();
        by("sql").focus();
      }));
      const item = make("li", null);
      item.append(again, make("span", ` ${new Date(entry.time).toLocaleString(lang)} · ${number(entry.about)}`));
      list.append(item);
    }
    by("history").replaceChildren(asked.answers.length ? list : make("p", words.history_none));
  }

  by("login").addEventListener("submit", guarded(async () => { token = by("token").value.trim(); await enter(); }));
  by("leave").addEventListener("click", leave);
  by("print").addEventListener("click", () => window.print());
  by("dataset").addEventListener("change", guarded(choose));
  by("put").addEventListener("click", build);
  by("price").addEventListener("click", guarded(price));
  by("ask").addEventListener("submit", guarded(ask));
  by("sql").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); by("ask").requestSubmit(); }
  });
  if (token) guarded(enter)();
})();
