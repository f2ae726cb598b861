"use strict";
// Bars with whiskers as SVG, built node by node: no value is ever parsed as markup.
(function () {
  const SPACE = "http://www.w3.org/2000/svg";
  const MOST = 40;

  function node(name, attributes, text) {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // rows: [{label, value, low, high}]; returns an SVG with a title and a description, or null where there is nothing to draw.
  window.chart = function (name, rows, alternative) {
    const shown = rows.slice(0, MOST).filter((row) => row.value !== null);
    if (!shown.length) return null;
    const ends = shown.flatMap((row) => [row.value, row.low ?? row.value, row.high ?? row.value, 0]);
    const least = Math.min(...ends), most = Math.max(...ends);
    const width = 640, left = 170, right = 24, line = 26, top = 8;
    const height = top + shown.length * line + 26;
    const at = (value) => left + (most === least ? 0 : (value - least) / (most - least)) * (width - left - right);
    const picture = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "chart" });
    picture.setAttribute("aria-label", alternative);
    picture.append(node("title", {}, alternative));
    shown.forEach((row, index) => {
      const y = top + index * line;
      const label = row.label.length > 24 ? row.label.slice(0, 23) + "…" : row.label;
      picture.append(node("text", { x: left - 8, y: y + 16, "text-anchor": "end", class: "label" }, label));
      const from = Math.min(at(0), at(row.value));
      picture.append(node("rect", {
        x: from, y: y + 4, width: Math.max(1, Math.abs(at(row.value) - at(0))), height: 16, class: "bar",
      }));
      if (row.low !== null && row.high !== null) {
        const a = at(row.low), b = at(row.high), m = y + 12;
        picture.append(node("path", {
          d: `M${a} ${m - 5}V${m + 5}M${a} ${m}H${b}M${b} ${m - 5}V${m + 5}`, class: "whisker",
        }));
      }
    });
    const base = top + shown.length * line + 2;
    picture.append(node("path", { d: `M${at(0)} ${top}V${base}`, class: "axis" }));
    picture.append(node("text", { x: at(0), y: base + 16, "text-anchor": "middle", class: "tick" }, "0"));
    for (const end of [least, most]) {
      if (Math.abs(at(end) - at(0)) > 40) {
        const text = end.toLocaleString(document.documentElement.lang, { maximumSignificantDigits: 4 });
        picture.append(node("text", { x: at(end), y: base + 16, "text-anchor": end === most ? "end" : "start", class: "tick" }, text));
      }
    }
    return picture;
  };
  window.chart.most = MOST;
})();
