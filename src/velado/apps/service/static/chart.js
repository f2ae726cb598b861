"use strict";
// Bars with whiskers as SVG, built node by node: no value is ever parsed as markup.
(function () {
  const SPACE = "http://www.w3.org/2000/svg";
  const MOST = 40;
  const NARROW = 520;

  function node(name, attributes, text) {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // rows: [{label, value, low, high}]; an unknown value has a whisker and no bar. One unit of the drawing is one pixel of the
  // room there is, so letters stay as large on a phone; there labels stand above their bars.
  // Returns an SVG with a title, or null where there is nothing to draw.
  window.chart = function (name, rows, alternative, room) {
    const shown = rows.slice(0, MOST).filter((row) => row.value !== null || row.low !== null);
    if (!shown.length) return null;
    const ends = shown.flatMap((row) => [row.value, row.low, row.high, 0]).filter((end) => end !== null);
    const least = Math.min(...ends), most = Math.max(...ends);
    const width = Math.max(240, Math.min(736, Math.floor(room || 640))), narrow = width < NARROW;
    const left = narrow ? 4 : 170, right = narrow ? 8 : 24, above = narrow ? 18 : 0, line = 26 + above, top = 8;
    const letters = narrow ? Math.floor((width - 12) / 8) : 24;
    const height = top + shown.length * line + 26;
    const at = (value) => left + (most === least ? 0 : (value - least) / (most - least)) * (width - left - right);
    const picture = node("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", class: "chart" });
    picture.setAttribute("aria-label", alternative);
    picture.append(node("title", {}, alternative));
    shown.forEach((row, index) => {
      const y = top + index * line + above;
      const label = row.label.length > letters ? row.label.slice(0, letters - 1) + "…" : row.label;
      picture.append(narrow ? node("text", { x: left, y: y - 2, class: "label" }, label)
        : node("text", { x: left - 8, y: y + 16, "text-anchor": "end", class: "label" }, label));
      if (row.value !== null) {
        picture.append(node("rect", {
          x: Math.min(at(0), at(row.value)), y: y + 4, width: Math.max(1, Math.abs(at(row.value) - at(0))), height: 16, class: "bar",
        }));
      }
      if (row.low !== null && row.high !== null) {
        const a = at(row.low), b = at(row.high), m = y + 12;
        picture.append(node("path", {
          d: `M${a} ${m - 5}V${m + 5}M${a} ${m}H${b}M${b} ${m - 5}V${m + 5}`, class: row.value === null ? "whisker unknown" : "whisker",
        }));
      }
    });
    const base = top + shown.length * line + 2;
    picture.append(node("path", { d: `M${at(0)} ${top}V${base}`, class: "axis" }));
    const zero = at(0) < left + 20 ? "start" : at(0) > width - right - 20 ? "end" : "middle";
    picture.append(node("text", { x: at(0), y: base + 16, "text-anchor": zero, class: "tick" }, "0"));
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
