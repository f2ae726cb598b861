"use strict";
// The form that writes a query, and reads one: what is chosen stands in the SQL, and what the SQL says stands in the form as
// far as the form has room for it. The service takes queries apart; nothing is parsed here.
(function () {
  const by = (id) => document.getElementById(id);
  const TESTS = ["=", "<>", "<", "<=", ">", ">="];
  const fraction = (text) => { const [over, under] = String(text).split("/"); return Number(over) / Number(under || 1); };
  const quote = (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
  const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

  window.makeBuilder = function (words, make, changed) {
    let columns = [], table = "";

    const kind_of = (name) => (columns.find((one) => one.name === name) || {}).kind;

    function literal(name, text) {
      const plain = text.trim();
      if (kind_of(name) === "numeric" && /^-?\d+([.,]\d+)?$/.test(plain)) return plain.replace(",", ".");
      return (kind_of(name) === "date" ? "DATE " : "") + quoted(kind_of(name) === "numeric" ? plain : text);
    }

    // What can be asked of a column: order for numbers and days, patterns for texts, nothing missing for all.
    function tests_of(name) {
      const ordered = ["numeric", "date"].includes(kind_of(name));
      return [...(ordered ? TESTS : ["=", "<>"]), "in", ...(ordered ? [] : ["like"]), "missing", "present"];
    }

    function said(test) {
      return { in: words.test_in, like: words.test_like, missing: words.test_missing, present: words.test_present }[test] || test;
    }

    function condition(given) {
      const line = make("li", null);
      const column = make("select", null, { "aria-label": words.column, class: "column" });
      column.append(...columns.map((one) => make("option", one.name)));
      if (given) column.value = given.column;
      const test = make("select", null, { "aria-label": words.test, class: "test" });
      const place = make("span", null);
      const remove = make("button", words.remove, { type: "button", class: "plain remove" });
      const fill_tests = () => test.replaceChildren(...tests_of(column.value).map((one) => make("option", said(one), { value: one })));
      function fill_value(text) {
        if (["missing", "present"].includes(test.value)) { place.replaceChildren(); return; }
        const declared = (columns.find((one) => one.name === column.value) || {}).values;
        const listed = declared && ["=", "<>"].includes(test.value) && (text === undefined || declared.includes(text));
        const input = listed ? make("select", null)
          : make("input", null, kind_of(column.value) === "numeric" && test.value !== "in" ? { inputmode: "decimal", size: 8 }
            : kind_of(column.value) === "date" && test.value !== "in" ? { type: "date" } : { size: 14 });
        if (listed) input.append(...declared.map((one) => make("option", one)));
        input.setAttribute("aria-label", words.test_value);
        input.className = "value";
        if (text !== undefined) input.value = text;
        input.required = true;
        input.addEventListener("change", write);
        place.replaceChildren(input);
      }
      fill_tests();
      if (given) test.value = given.test;
      fill_value(given ? given.value : undefined);
      column.addEventListener("change", () => { fill_tests(); fill_value(); write(); });
      test.addEventListener("change", () => { fill_value(place.querySelector(".value")?.value); write(); });
      remove.addEventListener("click", () => { line.remove(); write(); by("add-condition").focus(); });
      line.append(column, " ", test, " ", place, " ", remove);
      return line;
    }

    function condition_sql(line) {
      const name = line.querySelector(".column").value, test = line.querySelector(".test").value;
      const value = line.querySelector(".value") ? line.querySelector(".value").value : "";
      if (test === "missing") return `${quote(name)} IS NULL`;
      if (test === "present") return `${quote(name)} IS NOT NULL`;
      if (value.trim() === "") return "";
      if (test === "like") return `${quote(name)} LIKE ${quoted(value)}`;
      if (test === "in") return `${quote(name)} IN (${value.split(",").map((one) => literal(name, one.trim())).join(", ")})`;
      return `${quote(name)} ${test} ${literal(name, value)}`;
    }

    function write() {
      const key = by("by").value, kind = by("what").value;
      parts();
      // Everything but a count is of a column; the first one is better than another question than was chosen.
      if (by("of").value === "" && kind !== "COUNT" && by("of").options.length > 1) by("of").selectedIndex = 1;
      const of = by("of").value;
      const more = kind === "QUANTILE" ? ", " + by("level").value.trim().replace(",", ".")
        : kind === "HISTOGRAM" ? ", " + by("bins").value : "";
      const what = of === "" ? "COUNT(*)" : `${kind}(${quote(of)}${more})`;
      const tests = [...by("conditions").children].map(condition_sql).filter((one) => one);
      by("sql").value = `SELECT ${key ? quote(key) + ", " : ""}${what} FROM ${quote(table)}` +
        (tests.length ? ` WHERE ${tests.join(by("any").value === "or" ? " OR " : " AND ")}` : "") + (key ? ` GROUP BY ${quote(key)}` : "");
      // A condition without a value stands in no query: it is said, and nothing is priced or paid meanwhile (`required`).
      by("built").textContent = by("conditions").querySelector(".value:invalid") ? words.unfinished
        : by("of").options.length > 1 ? "" : words.no_bounds;
      changed();
    }

    function parts() {
      by("level-part").hidden = by("what").value !== "QUANTILE";
      by("bins-part").hidden = by("what").value !== "HISTOGRAM";
      by("any-part").hidden = by("conditions").children.length < 2;
    }

    const shown = ([type, text]) => (type === "number" ? String(fraction(text)) : text);

    // One test of one column as the form has it, or null where it has no place there.
    function leaf(form) {
      const [word, ...rest] = form;
      if (word === "null") return { column: rest[0], test: "missing" };
      if (word === "not") return rest[0][0] === "null" ? { column: rest[0][1], test: "present" } : null;
      if (word === "like") return { column: rest[0], test: "like", value: rest[1] };
      if (word === "in") {
        const values = rest.slice(1).map(shown);
        return values.some((one) => one.includes(",") || one !== one.trim()) ? null : { column: rest[0], test: "in", value: values.join(", ") };
      }
      return TESTS.includes(word) ? { column: rest[0], test: word, value: shown(rest[1]) } : null;
    }

    // The form shows the query the service took apart; false where it says more than the form can show.
    function read(query) {
      const [kind, column, at, bins] = query.aggregates[0];
      const joined = query.where === null ? [] : ["and", "or"].includes(query.where[0]) ? query.where.slice(1) : [query.where];
      const tests = joined.map(leaf);
      const what = at === null ? kind.toUpperCase() : at === "1/2" ? "MEDIAN" : "QUANTILE";
      const of = [...by("of").options].some((one) => one.value === (column || ""));
      const fits = query.aggregates.length === 1 && query.keys.length < 2 && !tests.includes(null) && of;
      by("built").textContent = fits ? "" : words.beyond_form;
      if (!fits) { by("conditions").replaceChildren(); parts(); return; }
      by("what").value = what;
      by("of").value = column || "";
      if (what === "QUANTILE") by("level").value = String(fraction(at));
      if (bins !== null) by("bins").value = bins;
      by("by").value = query.keys[0] || "";
      by("any").value = query.where !== null && query.where[0] === "or" ? "or" : "and";
      by("conditions").replaceChildren(...tests.map(condition));
      parts();
    }

    function begin(dataset) {
      columns = dataset.columns;
      table = dataset.name;
      const numeric = columns.filter((column) => column.kind === "numeric" && column.bounds);
      const keys = columns.filter((column) => column.group_by);
      by("of").replaceChildren(make("option", words.every_row, { value: "" }), ...numeric.map((c) => make("option", c.name)));
      by("by").replaceChildren(make("option", words.nothing, { value: "" }), ...keys.map((c) => make("option", c.name)));
      // All but a count needs a column with bounds: where there is none, nothing else is offered.
      for (const one of by("what").options) one.disabled = one.value !== "COUNT" && !numeric.length;
      by("what").value = "COUNT";
      by("conditions").replaceChildren();
      write();
    }

    for (const id of ["what", "of", "level", "bins", "by", "any"]) by(id).addEventListener("change", write);
    by("add-condition").addEventListener("click", () => {
      const line = condition();
      by("conditions").append(line);
      write();
      line.querySelector("select").focus();
    });
    return { begin, read };
  };
})();
