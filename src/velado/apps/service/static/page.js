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

  // Amounts of the budget: six decimals, no exponent; a remainder below them is called so.
  const amount = (value) => (value > 0 && value < 1e-6 ? words.tiny
    : Number(value).toLocaleString(lang, { maximumFractionDigits: 6 }));
  const share = (part) => Number((part * 100).toPrecision(6)).toLocaleString(lang, { maximumFractionDigits: 4 }) + "%";

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

  // Beside what was pressed: a form of the owner's, the question's buttons, or the token.
  function show(problem, near) {
    const box = by("error");
    box.replaceChildren(make("h2", words.error), make("p", problem.what),
      make("p", `${words.why}: ${problem.why}`), make("p", `${words.fix}: ${problem.fix}`));
    if (by("work").hidden) by("login").after(box); else (near || by("ask")).append(box);
    box.hidden = false;
    box.focus();
  }

  // What goes on unasked is quiet: it must not lock the buttons under somebody's finger.
  async function call(method, path, body, quiet = false) {
    let reply, found;
    if (!quiet) busy(1);
    try {
      reply = await fetch(path, {
        method, cache: "no-store", credentials: "omit",
        // The language of the page, which ?lang= may have chosen against the browser's.
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", "Accept-Language": lang },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      found = await reply.json();
    } catch {
      throw { what: words.offline, why: words.offline_why, fix: words.offline_fix, code: "offline" };
    } finally {
      if (!quiet) busy(-1);
    }
    if (!reply.ok) throw found;
    return found;
  }

  function busy(change) {
    pending += change;
    by("busy").textContent = pending ? words.working : "";
    for (const id of ["price", "go"]) by(id).disabled = pending > 0;
  }

  const guarded = (job, near) => async (event) => {
    if (event) event.preventDefault();
    by("error").hidden = true;
    try { await job(event); } catch (problem) {
      if (!problem || !problem.what) throw problem;
      if (problem.code === "token") leave();
      // How a program sends a token is no advice for who types one.
      show(problem.code === "token" ? { ...problem, fix: words.token_fix } : problem, near);
    }
  };

  const chosen = () => datasets.find((one) => one.name === by("dataset").value);

  async function enter() {
    await load();
    sessionStorage.setItem(KEY, token);
    by("question").focus();
  }

  // The data sets as the service has them now; the one that was chosen stays so, if it is still there.
  async function load() {
    const before = by("dataset").value;
    const found = await call("GET", "/v1/datasets");
    datasets = found.datasets;
    by("who").firstElementChild.textContent = say("you_are", { analyst: found.you.analyst, role: words[found.you.role] });
    by("dataset").replaceChildren(...datasets.map((one) => make("option", one.title, { value: one.name })));
    if (datasets.some((one) => one.name === before)) by("dataset").value = before;
    by("login").hidden = true;
    by("work").hidden = false;
    await choose();
    await owner.show(datasets, found.you);
  }

  function leave() {
    sessionStorage.removeItem(KEY);
    token = null;
    by("token").value = "";
    by("work").hidden = true;
    by("login").hidden = false;
    empty("answer", "priced");
    owner.hide();
    by("token").focus();
  }

  async function choose() {
    const one = chosen();
    by("go").disabled = by("price").disabled = !one;
    if (!one) {
      for (const id of ["budget", "promise", "columns", "history"]) by(id).replaceChildren();
      by("sql").value = "";
      return;
    }
    const promise = one.guarantee;
    by("promise").textContent = say(one.mode === "groups" ? "promise_groups" : "promise_strict", {
      column: promise.column, rows: promise.most_rows, definition: promise.budget.measure === "epsilon" ? words.pure : words.zcdp,
    });
    if (promise.dependence) by("promise").append(make("strong", " " + say("promise_if", { dependence: promise.dependence })));
    for (const text of promise.warnings || []) by("promise").append(make("strong", " " + text));
    by("columns").replaceChildren(table("", [words.column, words.kind, words.range, words.groupable],
      one.columns.map((column) => [column.name, words[column.kind] || column.kind || "–", range(column),
        column.group_by ? words.yes : words.no])));
    by("spend-hint").textContent = say("spend_hint", { each: amount(fraction(one.each)) });
    builder.begin(one);
    empty("answer", "priced");
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

  function empty(...ids) {
    for (const id of ids) { by(id).replaceChildren(); by(id).hidden = true; }
  }

  function request() {
    const spend = by("spend").value.trim().replace(",", "."), within = by("within").value.trim().replace(",", ".");
    const body = { dataset: by("dataset").value, sql: by("sql").value, confidence: Number(by("confidence").value) };
    if (spend) body.spend = spend;
    if (within) body.within = within;
    return body;
  }

  async function price(before = false) {
    if (!before && !by("ask").reportValidity()) return;
    empty("priced");
    priced(await call("POST", "/v1/price", request()), before);
  }

  // By how much each value will be off stands first; what it costs, and how it is drawn, after it.
  function priced(found, before = false) {
    const box = by("priced");
    const left = found.left.about, cost = found.cost.about;
    const noisy = found.plan.values.some((one) => one.mostly_noise);
    box.replaceChildren(make("h2", words.price_title));
    found.notes.forEach((text, at) => {
      const last = noisy && at === found.notes.length - 1;
      const half = at < found.plan.values.filter((one) => one.half_width !== undefined).length;
      box.append(make("p", text, { class: last ? "warning" : half ? "off" : "hint" }));
    });
    if (before) box.append(make("p", words.asked_before));
    if (!found.plan.draws.length) box.append(make("p", words.price_free));
    else {
      box.append(make("p", say("price_cost", { measure: words[found.cost.measure], cost: amount(cost), left: amount(left) })));
      const implied = found.guarantee.budget.implies;
      if (implied) box.append(make("p", say("implies_all", { epsilon: number(implied.epsilon), delta: number(implied.delta) })));
      if (!before && found.questions > 1) box.append(make("p", say("price_room", { n: number(found.questions) })));
      else if (!before) box.append(make("p", found.enough ? words.price_enough : words.price_short, found.enough ? {} : { class: "short" }));
      const ranks = found.plan.draws.filter((draw) => draw.rank_error);
      const details = make("details", null);
      details.append(make("summary", words.drawn_how), table("", [words.draw, words.mechanism, words.sensitivity, words.scale,
        ...(ranks.length ? [words.rank_error] : []), words.charge], found.plan.draws.map((draw) => {
        // A quantile's scores have a scale too, but what it means is the rank it may miss by.
        const off = draw.rank_error, size = draw.in_values || draw;
        return [say("need_" + draw.what, { column: draw.column, quantile: draw.level ? share(fraction(draw.level)) : "" }),
          draw.mechanism, off ? "–" : number(size.sensitivity), off ? "–" : number(size.scale),
          ...(ranks.length ? [off ? say("rank_rows", { rows: number(Math.ceil(off.rows)) }) : "–"] : []),
          amount(fraction(draw.charge))];
      })));
      // A quantile has no half-width: its rank is what may be missed, so it is not hidden.
      details.open = ranks.length > 0;
      box.append(details);
      if (ranks.length) box.append(make("p", say("rank_chance", { level: share(ranks[0].rank_error.confidence) }), { class: "hint" }));
    }
    box.hidden = false;
  }

  // Noise is not sold unseen: where a price warns, it is paid only after a second word.
  async function ask() {
    const body = request();
    // A refused question must not stand above the answer of the one before.
    empty("answer", "priced");
    const first = await call("POST", "/v1/price", body);
    if (first.plan.values.some((one) => one.mostly_noise)) {
      priced(first);
      const anyway = make("button", words.pay_noise, { type: "button", id: "anyway" });
      const rather = make("button", words.pay_not, { type: "button", id: "rather", class: "plain" });
      anyway.addEventListener("click", guarded(() => pay(body)));
      rather.addEventListener("click", () => { empty("priced"); by("within").focus(); });
      by("priced").append(anyway, " ", rather);
      by("priced").focus();
      return;
    }
    await pay(body);
  }

  // A cell of a CSV file; what a spreadsheet would take for a formula is a text there.
  const csv = (cell) => {
    if (cell === null) return "";
    const text = typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? "'" + cell : String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };

  function save(label, name, type, text) {
    const button = make("button", label, { type: "button", class: "plain" });
    button.addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([text], { type }));
      make("a", "", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
    return button;
  }

  async function pay(body) {
    empty("answer", "priced");
    const found = await call("POST", "/v1/answers", body);
    const box = by("answer");
    const names = found.columns.map((column) => column.name);
    const values = found.how.values;
    const keys = names.filter((name) => !values.some((v) => [v, v + "_low", v + "_high"].includes(name)));
    const level = share(found.how.confidence);
    const plain = values.filter((v) => found.how.plan.values.some((one) => one.name === v && one.answered_as === "number"));
    const cell = (row, name) => row[names.indexOf(name)];
    const label = (row) => keys.map((key) => cell(row, key) ?? words.missing_key).join(" · ");
    const span = (row, value) => cell(row, value + "_low") === null ? "–"
      : `${number(cell(row, value + "_low"))} … ${number(cell(row, value + "_high"))}`;
    const value_of = (row, name) => cell(row, name) === null ? words.unknown : number(cell(row, name));
    box.replaceChildren(make("h2", words.answer));
    box.hidden = false;
    if (found.rows.length === 1 && values.length === 1) {
      const big = make("p", null, { class: "value" });
      big.append(make("strong", value_of(found.rows[0], values[0])));
      if (plain.length) big.append(make("span", ` ${say("interval", { level })}: ${span(found.rows[0], values[0])}`));
      box.append(big);
    } else {
      const heads = values.flatMap((v) => (plain.includes(v) ? [v, say("interval", { level })] : [v]));
      box.append(table("", [...keys, ...heads], found.rows.map((row) => [...keys.map((key) => cell(row, key) ?? words.missing_key),
        ...values.flatMap((v) => (plain.includes(v) ? [value_of(row, v), span(row, v)] : [value_of(row, v)]))])));
    }
    for (const value of values) {
      const rows = found.rows.map((row) => ({
        label: label(row) || value, value: cell(row, value), low: cell(row, value + "_low"), high: cell(row, value + "_high"),
      }));
      const text = rows.slice(0, window.chart.most).map((row) => `${row.label} ${row.value === null ? words.unknown : number(row.value)}`).join("; ");
      const style = getComputedStyle(box), room = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
      const picture = window.chart(value, rows, say("chart_of", { name: value, text }), room);
      if (picture) {
        const figure = make("figure", null);
        figure.append(picture, make("figcaption", value + (rows.length > window.chart.most ? ". " + say("chart_cut", { count: window.chart.most }) : "")));
        box.append(figure);
      }
    }
    for (const text of [...found.notes, ...readings(found, plain, level)]) box.append(make("p", text, { class: "hint" }));
    const implied = found.guarantee.implies;
    if (implied) box.append(make("p", say("implied", { epsilon: amount(implied.epsilon), delta: number(implied.delta) }), { class: "hint" }));
    box.append(make("p", found.stored ? words.answer_stored : say("answer_cost", {
      measure: words[found.cost.measure], cost: amount(found.cost.about.spent), left: amount(found.cost.about.left) })));
    box.append(make("p", body.sql, { class: "asked" }));
    const saves = make("p", null, { class: "saves" });
    const lines = [names, ...found.rows].map((row) => row.map(csv).join(",")).join("\r\n") + "\r\n";
    saves.append(save(words.save_csv, `${body.dataset}.csv`, "text/csv;charset=utf-8", lines),
      save(words.save_json, `${body.dataset}.json`, "application/json", JSON.stringify(found, null, 2) + "\n"));
    box.append(saves);
    by("priced").hidden = true;
    // Before anything is waited for: whoever has gone on to the next question keeps the focus there.
    box.focus();
    await refresh();
  }

  // What each value is; an interval is explained where there is one, a rank where there is none.
  function readings(found, plain, level) {
    const out = found.how.plan.values.filter((one) => one.answered_as !== "number").map((one) => {
      if (one.answered_as === "bound") return say("bound", one);
      const named = say(["min", "max"].includes(one.asked) ? "extreme" : "quantile",
        { name: one.name, asked: one.asked.toUpperCase(), quantile: share(fraction(one.level)) });
      return named + " " + say(one.rank_error.beyond === "the asked rank" ? "rank" : "rank_best", {
        rows: number(Math.ceil(one.rank_error.rows)), candidates: number(one.candidates), level: share(one.rank_error.confidence) });
    });
    const promise = found.guarantee;
    if (plain.length) out.push(say("noisy", { level, rows: promise.mode === "strict" ? words.all_rows
      : say("rows_that_count", { rows: promise.most_rows, column: promise.column }) }));
    return out;
  }

  async function refresh() {
    const name = by("dataset").value;
    if (!name) return;
    const [all, asked] = await Promise.all([
      call("GET", "/v1/budget"), call("GET", "/v1/answers?most=50&dataset=" + encodeURIComponent(name))]);
    const one = all.budgets.find((budget) => budget.dataset === name);
    const line = say("budget_line", { spent: amount(one.about.spent), total: amount(one.budget.about),
      measure: words[one.budget.measure], left: amount(one.about.left) });
    const meter = make("meter", line, { min: 0, max: one.budget.about, value: one.about.spent, "aria-label": words.budget, title: line });
    const parts = [meter, make("p", line)];
    const own = amount(one.you.about.spent);
    parts.push(make("p", one.you.cap === null ? say("budget_you", { spent: own })
      : say("budget_cap", { spent: own, cap: amount(one.you.about.cap) })));
    if (one.budget.implies) parts.push(make("p", say("implies", { epsilon: amount(one.budget.implies.epsilon), delta: number(one.budget.implies.delta) }), { class: "hint" }));
    if (one.by_analyst) {
      const people = [...new Set([...Object.keys(one.by_analyst), ...Object.keys(one.caps)])].sort();
      parts.push(table(words.everybody, [words.analyst, words.spent, words.share], people.map((who) =>
        [who, amount(fraction(one.by_analyst[who] || 0)), who in one.caps ? amount(fraction(one.caps[who])) : "–"])));
    }
    by("budget").replaceChildren(...parts);
    const list = make("ol", null, { class: "history" });
    for (const entry of asked.answers) {
      const again = make("button", entry.sql, { type: "button", class: "plain", title: words.again });
      again.addEventListener("click", guarded(async () => {
        by("sql").value = entry.sql;
        by("within").value = entry.within || "";
        by("spend").value = entry.within ? "" : entry.spend || "";
        if (entry.confidence) by("confidence").value = entry.confidence;
        await take_apart();
        await price(entry.spend !== null);
        by("sql").focus();
      }));
      const item = make("li", null);
      item.append(again, make("span", ` ${new Date(entry.time).toLocaleString(lang)} · ${amount(entry.about)}`));
      list.append(item);
    }
    by("history").replaceChildren(asked.answers.length ? list : make("p", words.history_none));
  }

  // What was typed is shown in the form; what cannot be read is said there, and in full when it is priced or asked.
  async function take_apart() {
    const sql = by("sql").value;
    if (!chosen() || !sql.trim()) return;
    try {
      const found = await call("POST", "/v1/parse", { dataset: by("dataset").value, sql }, true);
      if (by("sql").value === sql) builder.read(found.query);
    } catch (problem) {
      if (!problem || !problem.what) throw problem;
      by("built").textContent = problem.what;
    }
  }

  const builder = window.makeBuilder(words, make, () => empty("priced"));
  const owner = window.makeOwner(words, { make, table, call, guarded, chosen, refresh, again: load });

  by("login").addEventListener("submit", guarded(async () => { token = by("token").value.trim(); await enter(); }));
  by("leave").addEventListener("click", leave);
  by("print").addEventListener("click", () => window.print());
  by("dataset").addEventListener("change", guarded(choose));
  by("sql").addEventListener("change", take_apart);
  by("price").addEventListener("click", guarded(() => price()));
  by("ask").addEventListener("submit", guarded(ask));
  by("sql").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); by("ask").requestSubmit(); }
  });
  if (token) guarded(enter)();
})();
