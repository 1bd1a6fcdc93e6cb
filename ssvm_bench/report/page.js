"use strict";
// Light and dark mode, sortable tables, and figures, each drawn when it is first seen, or printed.
// The address has the view: the filter, and what the reader has chosen in each figure.

const GONE = 65535, HEIGHT = 250, TALL = 440, LEFT = 52, RIGHT = 8, TOP = 8, BOTTOM = 40;

function make(tag, attributes = {}, ...inside) {
  const made = document.createElementNS(
    attributes.svg ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml", tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name != "svg" && value != null) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}
const svg = (tag, attributes, ...inside) => make(tag, { svg: 1, ...attributes }, ...inside);

// ---- light and dark

const root = document.documentElement, theme = document.getElementById("theme");
function show(scheme) {
  root.style.colorScheme = scheme;
  theme.textContent = scheme == "dark" ? "Light page" : "Dark page";
}
const preferred = matchMedia("(prefers-color-scheme: dark)");
const kept = () => { try { return localStorage.getItem("scheme"); } catch { return null; } };
const scheme = () => kept() || (preferred.matches ? "dark" : "light");
show(scheme());
preferred.addEventListener("change", () => show(scheme()));
theme.addEventListener("click", () => {
  const other = root.style.colorScheme == "dark" ? "light" : "dark";
  try { localStorage.setItem("scheme", other); } catch { /* a page from disk may keep nothing */ }
  show(other);
});

// ---- tables: a button in each column's head sorts the rows, by number if they have numbers

const UNITS = { "µs": 1e-6, ms: 1e-3 };
function measure(cell) {
  const [, digits, unit] = /^[^\d]{0,2}?([-−]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*(µs|ms)?/.exec(cell) || [];
  return digits ? Number(digits.replaceAll(",", "").replace("−", "-")) * (UNITS[unit] || 1) : NaN;
}
function compare(a, b) {
  const [x, y] = [measure(a), measure(b)];
  if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y) || a.localeCompare(b);
  return x - y;
}
for (const head of document.querySelectorAll("table.sortable thead th")) {
  const button = make("button", { onclick: () => {
    const up = head.ariaSort != "ascending", body = head.closest("table").tBodies[0];
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.ariaSort = up ? "ascending" : "descending";
    const text = row => row.cells[head.cellIndex].textContent.trim();
    body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * compare(text(a), text(b))));
  } }, ...head.childNodes);
  head.append(button);
}

// ---- figures

const power = text => [...text].map(c => c == "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join("");
function written(value) {
  if (value == 0) return "0";
  const [digits, exponent] = value.toPrecision(3).split("e");
  if (exponent === undefined && Math.abs(value) >= 1e-3) return String(Number(digits));
  const [d, e] = value.toExponential(2).split("e");
  return `${Number(d)}·10${power(String(Number(e)))}`;
}

// A value has two bytes: its position between the ends of its axis, which may be logarithmic.
function unpacked(text, [low, high]) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  return Array.from(new Uint16Array(bytes.buffer),
    code => code == GONE ? NaN : low + (high - low) * code / (GONE - 1));
}

// As an axis of the other scale has them; a logarithmic one has no zero.
function scaled(values, from, to) {
  if (from == to) return values;
  return values.map(from ? value => 10 ** value : value => value > 0 ? Math.log10(value) : NaN);
}

function download(name, type, ...content) {
  const href = URL.createObjectURL(new Blob(content, { type }));
  make("a", { href, download: name.replace(/[^\p{L}\p{N}.]+/gu, "_") }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

const LOOK = ["fill", "fill-opacity", "stroke", "stroke-width", "font-family", "font-size"];
const INK = "#1b1f23", PAPER = "#fff";

function ticks(low, high, log, most) {
  if (log && high - low > .5) { // powers of ten; if there are few, also 2 and 5 times these
    const first = Math.ceil(low - 1e-9), powers = Math.floor(high + 1e-9) - first + 1, found = [];
    const step = Math.max(1, Math.ceil(powers / most)), between = powers < 3 ? [1, 2, 5] : [1];
    for (let k = powers < 3 ? first - 1 : first; k <= high + 1e-9; k += step)
      for (const times of between) {
        const at = k + Math.log10(times);
        if (at > low - 1e-9 && at < high + 1e-9)
          found.push([at, powers < 3 ? written(times * 10 ** k) : `10${power(String(k))}`]);
      }
    return found;
  }
  const [from, to] = log ? [10 ** low, 10 ** high] : [low, high];
  const rough = (to - from || 1) / most, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(k => k * size).find(k => k >= rough);
  const found = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + step * 1e-9; k++)
    if (!log || k > 0) found.push([log ? Math.log10(k * step) : k * step, written(k * step)]);
  return found;
}

class Plot {
  constructor(figure) {
    this.figure = figure;
    this.data = content(figure);
    this.said = make("p", { class: "said", "aria-live": "polite" });
    this.panels = this.data.panels.map((name, k) => this.panel(name, k));
    this.buttons = this.data.axes.map((axis, k) =>
      make("button", { onclick: () => this.change(() => this.along(k)) }, axis.button));
    this.logs = ["x", "y"].map((name, k) => make("button", {
      onclick: () => this.change(() => { this.log[k] = !this.log[k]; this.unpack(); }),
    }, `log ${name}`));
    this.legend = this.data.curves.map((curve, k) => make("button", {
      onclick: event => { if (event.detail < 2) this.change(() => this.toggle(k)); },
      ondblclick: () => this.change(() => this.only(k), true),
      title: "Click: hide or show; double click: this one alone",
    }, svg("svg", { width: 34, height: 10, "aria-hidden": "true" }, this.line(curve, "M1,5H33")),
    curve.name));
    figure.querySelector(".here").replaceChildren(
      make("div", { class: "choice" },
        make("div", { role: "group", "aria-label": "x axis" }, ...this.buttons),
        make("div", { role: "group", "aria-label": "scales" }, ...this.logs),
        make("button", { class: "quiet", onclick: () => this.save() }, "Numbers (CSV)")),
      make("div", { class: "panels" }, ...this.panels.map(panel => panel.box)),
      this.said,
      make("div", { class: "legend", role: "group", "aria-label": "Solvers" }, ...this.legend));
    this.show(figure.chosen || []);
    this.width = 0;
    new ResizeObserver(() => {
      const width = (this.alone || this.panels[0]).svg.clientWidth;
      if (width != this.width) { this.width = width; this.draw(); }
    }).observe(figure);
  }

  panel(name, k) {
    const drawn = svg("svg", { role: "img", tabindex: 0, height: HEIGHT });
    const panel = { name, k, svg: drawn, zoom: null, at: null };
    const tool = (text, about, onclick) =>
      make("button", { onclick, class: "tool", "aria-label": `${text}: ${name}${about}` }, text);
    panel.button = tool("Alone", ", without the other panels", () =>
      this.change(() => { this.alone = this.alone == panel ? null : panel; }));
    panel.button.hidden = this.data.panels.length == 1;
    panel.box = make("div", {}, make("div", { class: "head" }, make("h4", {}, name), panel.button,
      tool("SVG", " as a file", () => this.picture(panel)),
      tool("PNG", " as a file", () => this.picture(panel, 3))), drawn);
    drawn.addEventListener("pointermove", event => this.moved(panel, event));
    drawn.addEventListener("pointerleave", () => { if (!panel.from) this.point(panel, null); });
    drawn.addEventListener("pointerdown", event => {
      if (event.pointerType == "touch" || event.button) return;
      panel.from = [event.offsetX, event.offsetY];
      drawn.setPointerCapture(event.pointerId);
    });
    drawn.addEventListener("pointerup", event => this.released(panel, event));
    drawn.addEventListener("dblclick", () => this.zoom(panel, null));
    drawn.addEventListener("keydown", event => this.key(panel, event));
    return panel;
  }

  line(curve, path) {
    return svg("path", { d: path, class: "line", style: `--c:${curve.color}`, "stroke-dasharray": curve.dash });
  }

  // ---- what the reader has chosen: pairs of a word and a value, in the address

  *chosen() {
    const { data, axis, log: [logX, logY] } = this, scale = log => log ? "log" : "linear";
    if (axis != data.axes[0]) yield ["x", axis.button];
    if (logX != axis.log) yield ["xscale", scale(logX)];
    if (logY != data.log) yield ["yscale", scale(logY)];
    if (this.alone) yield ["panel", this.alone.name];
    const names = [false, true].map(gone =>
      data.curves.filter((_, k) => this.hidden.has(k) == gone).map(curve => curve.name));
    const few = names[0].length && names[0].length < names[1].length;
    for (const name of names[few ? 0 : 1]) yield [few ? "show" : "hide", name];
    for (const { name, zoom } of this.panels)
      if (zoom) yield ["zoom", [name, ...zoom.map(end => Number(end.toPrecision(6)))].join()];
  }

  show(chosen) {
    const all = word => chosen.filter(pair => pair[0] == word).map(pair => pair[1]);
    const { data } = this, [button] = all("x"), [alone] = all("panel");
    const some = all("show").filter(name => data.curves.some(curve => curve.name == name));
    this.hidden = new Set([...data.curves.keys()].filter(k =>
      some.length ? !some.includes(data.curves[k].name) : all("hide").includes(data.curves[k].name)));
    this.alone = this.panels.find(({ name }) => name == alone) || null;
    this.axis = data.axes.find(axis => axis.button == button) || data.axes[0];
    this.log = [["xscale", this.axis.log], ["yscale", data.log]].map(([word, log]) =>
      ({ log: true, linear: false })[all(word)[0]] ?? log);
    this.unpack();
    for (const text of all("zoom")) {
      const parts = text.split(","), ends = parts.splice(-4).map(Number);
      const panel = this.panels.find(({ name }) => name == parts.join());
      if (panel && ends.every(isFinite) && ends[0] < ends[1] && ends[2] < ends[3]) panel.zoom = ends;
    }
    this.draw();
  }

  change(how, same) {
    how();
    this.draw();
    remember(same);
  }

  along(k) {
    this.axis = this.data.axes[k];
    this.log[0] = this.axis.log;
    this.unpack();
  }

  unpack() {
    const { axis, log: [logX, logY] } = this;
    // a number: the heights are those of an earlier axis
    const heights = (of, k, p) => typeof of == "number" ? this.data.axes[of].curves[k][1][p] : of;
    this.curves = axis.curves.map(([x, panels], k) => {
      const along = x === null ? [] : scaled(unpacked(x, axis.x), axis.log, logX);
      return panels.map((of, p) => of !== null && {
        x: along, y: heights(of, k, p).map(text => scaled(unpacked(text, axis.y[p]), this.data.log, logY)),
      });
    });
    for (const panel of this.panels) panel.zoom = panel.at = null;
  }

  toggle(k) {
    if (!this.hidden.delete(k)) this.hidden.add(k);
  }

  only(k) {
    const others = this.legend.map((_, j) => j).filter(j => j != k);
    const alone = others.every(j => this.hidden.has(j));
    this.hidden = new Set(alone ? [] : others);
  }

  *shown(panel) {
    for (const [k, curve] of this.curves.entries())
      if (curve[panel.k] && !this.hidden.has(k) && fits(this.figure, this.data.curves[k].name))
        yield [k, curve[panel.k]];
  }

  draw() {
    this.buttons.forEach((button, k) => { button.ariaPressed = String(this.axis == this.data.axes[k]); });
    this.logs.forEach((button, k) => { button.ariaPressed = String(this.log[k]); });
    this.legend.forEach((button, k) => {
      button.ariaPressed = String(!this.hidden.has(k));
      button.hidden = !fits(this.figure, this.data.curves[k].name);
    });
    for (const panel of this.panels) {
      panel.box.hidden = this.alone && panel != this.alone;
      panel.button.ariaPressed = String(panel == this.alone);
    }
    this.panels.forEach(panel => this.drawPanel(panel));
  }

  drawPanel(panel) {
    const { svg: node } = panel, [logX, logY] = this.log, height = this.alone ? TALL : HEIGHT;
    const width = node.clientWidth, wide = width - LEFT - RIGHT, high = height - TOP - BOTTOM;
    if (wide <= 0) return;
    node.setAttribute("height", height);
    node.setAttribute("viewBox", `0 0 ${width} ${height}`); // a page of paper has another width
    const shown = [...this.shown(panel)];
    const xs = shown.flatMap(([, of]) => of.x.filter((x, j) => !isNaN(x) && !isNaN(of.y[0][j])));
    const ys = shown.flatMap(([, of]) => of.y.flat()).filter(y => !isNaN(y));
    const ends = (values, least) => values.length ? [Math.min(...values, least), Math.max(...values)] : [0, 1];
    let [x0, x1] = ends(xs, Infinity), [y0, y1] = ends(ys, logY ? Infinity : 0);
    const room = (y1 - y0 || 1) * .04;
    [y0, y1] = [logY ? y0 - room : y0, y1 + room];
    if (x0 == x1) [x0, x1] = [x0 - .5, x1 + .5];
    panel.ends = [x0, x1, y0, y1] = panel.zoom || [x0, x1, y0, y1];
    panel.place = (x, y) => [(x - x0) / (x1 - x0) * wide, (y1 - y) / (y1 - y0) * high];
    panel.value = (left, top) => [x0 + (left - LEFT) / wide * (x1 - x0), y1 - (top - TOP) / high * (y1 - y0)];

    const grid = svg("g", { class: "grid" });
    for (const [x, text] of ticks(x0, x1, logX, Math.max(2, Math.floor(wide / 70)))) {
      const left = LEFT + panel.place(x, y0)[0];
      grid.append(svg("path", { d: `M${left},${TOP}v${high}` }),
        svg("text", { x: left, y: TOP + high + 15, "text-anchor": "middle" }, text));
    }
    for (const [y, text] of ticks(y0, y1, logY, 6)) {
      const top = TOP + panel.place(x0, y)[1];
      grid.append(svg("path", { d: `M${LEFT},${top}h${wide}` }),
        svg("text", { x: LEFT - 6, y: top + 4, "text-anchor": "end" }, text));
    }
    grid.append(svg("text", { x: LEFT + wide / 2, y: height - 6, "text-anchor": "middle" }, this.axis.label));
    const inside = svg("svg", { x: LEFT, y: TOP, width: wide, height: high });
    const fixed = value => value.toFixed(1), said = [];
    for (const [k, of] of shown) {
      const curve = this.data.curves[k], [middle, low, top] = of.y;
      let path = "", band = [], open = false, single = [];
      const close = () => {
        if (band.length > 1) inside.append(svg("path", { class: "band", style: `--c:${curve.color}`,
          d: `M${band.map(b => b[1]).join("L")}L${band.map(b => b[0]).reverse().join("L")}Z` }));
        band = [];
      };
      of.x.forEach((x, j) => {
        if (isNaN(x) || isNaN(middle[j])) open = false;
        else {
          const at = panel.place(x, middle[j]).map(fixed).join();
          if (!open) single.push(at);
          else if (single.at(-1) == path.slice(path.lastIndexOf("M") + 1)) single.pop();
          path += (open ? "L" : "M") + at;
          open = true;
        }
        if (low && !isNaN(x) && !isNaN(low[j]))
          band.push([low[j], top[j]].map(y => panel.place(x, y).map(fixed).join()));
        else close();
      });
      close();
      inside.append(this.line(curve, path));
      for (const at of single) { // isolated points, which make no line
        const [cx, cy] = at.split(",");
        inside.append(svg("circle", { cx, cy, r: 3, class: "dot", style: `--c:${curve.color}` }));
      }
      const last = middle.findLast(y => !isNaN(y));
      if (last !== undefined) said.push(`${curve.name} ends at ${written(logY ? 10 ** last : last)}`);
    }
    const empty = shown.length ? "" : this.hidden.size ? "all solvers are hidden" : this.data.empty[panel.k];
    grid.append(svg("text", { class: "empty", x: LEFT + wide / 2, y: TOP + high / 2, "text-anchor": "middle" },
      said.length ? "" : empty || this.data.empty[panel.k] || "no value is above zero"));
    panel.mark = svg("g", {});
    inside.append(panel.mark);
    node.setAttribute("aria-label", `${panel.name} against ${this.axis.label}. ${said.join("; ") || empty}. ` +
      "Arrow keys read off the curves, plus and minus zoom, Escape shows all.");
    node.replaceChildren(grid, inside);
    if (panel.at) this.point(panel, panel.at);
  }

  // ---- values at the pointer, and zooming

  point(panel, at) {
    panel.at = at;
    panel.mark.replaceChildren();
    this.said.textContent = "";
    if (!at) return;
    const [k, j] = at, of = this.curves[k][panel.k], [logX, log] = this.log;
    const real = (value, isLog) => written(isLog ? 10 ** value : value);
    const [cx, cy] = panel.place(of.x[j], of.y[0][j]);
    panel.mark.append(svg("circle", { cx, cy, r: 4, class: "dot", style: `--c:${this.data.curves[k].color}` }));
    const [low, high] = of.y[1] ? [1, 2].map(i => real(of.y[i][j], log)) : [];
    const range = low != high && !isNaN(of.y[1][j]) ? `, from ${low} to ${high}` : "";
    this.said.textContent = `${this.data.curves[k].name}: ${panel.name} ${real(of.y[0][j], log)}${range}, at ` +
      `${this.axis.label} ${real(of.x[j], logX)}`;
  }

  moved(panel, event) {
    const { offsetX, offsetY } = event;
    if (panel.from) {
      const [x, y] = panel.from;
      panel.mark.replaceChildren(svg("rect", { class: "zoom", x: Math.min(x, offsetX) - LEFT, y: Math.min(y, offsetY) - TOP,
        width: Math.abs(offsetX - x), height: Math.abs(offsetY - y) }));
      return;
    }
    let best = null, least = 40 ** 2;
    for (const [k, of] of this.shown(panel))
      of.x.forEach((x, j) => {
        const [left, top] = panel.place(x, of.y[0][j]);
        const far = (left + LEFT - offsetX) ** 2 + (top + TOP - offsetY) ** 2;
        if (far < least) [best, least] = [[k, j], far];
      });
    this.point(panel, best);
  }

  released(panel, event) {
    const from = panel.from;
    panel.from = null;
    if (!from) return;
    const [a, b] = [from, [event.offsetX, event.offsetY]];
    panel.mark.replaceChildren();
    if (Math.abs(a[0] - b[0]) < 8 || Math.abs(a[1] - b[1]) < 8) return;
    const [[x0, y0], [x1, y1]] = [panel.value(...a), panel.value(...b)];
    this.zoom(panel, [Math.min(x0, x1), Math.max(x0, x1), Math.min(y0, y1), Math.max(y0, y1)]);
  }

  zoom(panel, ends) {
    panel.zoom = ends;
    this.drawPanel(panel);
    remember(true);
  }

  key(panel, event) {
    const there = [...this.shown(panel)].map(([k, of]) =>
      [k, of.x.map((_, j) => j).filter(j => !isNaN(of.x[j]) && !isNaN(of.y[0][j]))]).filter(([, js]) => js.length);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], other = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const factor = { "+": .5, "=": .5, "-": 2 }[event.key];
    if (event.key == "Escape") this.zoom(panel, null);
    else if (factor) {
      const [x0, x1, y0, y1] = panel.ends, of = panel.at && this.curves[panel.at[0]][panel.k];
      const [x, y] = of ? [of.x[panel.at[1]], of.y[0][panel.at[1]]] : [(x0 + x1) / 2, (y0 + y1) / 2];
      this.zoom(panel, [x + (x0 - x) * factor, x + (x1 - x) * factor, y + (y0 - y) * factor, y + (y1 - y) * factor]);
    } else if ((step || other) && there.length) {
      const [k, j] = panel.at || [there[0][0], -1], now = Math.max(0, there.findIndex(([c]) => c == k));
      const [curve, js] = there[(now + (other || 0) + there.length) % there.length];
      const place = js.findIndex(i => i >= j);
      const next = panel.at && step ? place + step : place < 0 ? js.length - 1 : place;
      this.point(panel, [curve, js[Math.min(Math.max(next, 0), js.length - 1)]]);
    } else return;
    event.preventDefault();
  }

  // ---- files: the numbers of all panels, and a picture of one

  save() {
    const real = (value, log) => isNaN(value) ? "" : (log ? 10 ** value : value).toPrecision(5) * 1;
    const quoted = text => `"${text.replaceAll('"', '""')}"`, [logX, logY] = this.log;
    const rows = [["solver", "quantity", quoted(this.axis.label), "median", "min", "max"]];
    for (const panel of this.panels)
      for (const [k, of] of this.shown(panel))
        of.x.forEach((x, j) => rows.push([quoted(this.data.curves[k].name), quoted(panel.name), real(x, logX),
          ...[0, 1, 2].map(i => real((of.y[i] || of.y[0])[j], logY))]));
    download(`${named(this.figure)}.csv`, "text/csv", rows.map(row => row.join()).join("\n"));
  }

  // Save a panel with its title and legend, as the light page has it: as SVG or, in so many dots a point, as PNG.
  async picture(panel, dots) {
    const before = root.style.colorScheme, copy = panel.svg.cloneNode(true);
    const [drawn, copied] = [panel.svg, copy].map(node => [node, ...node.querySelectorAll("*")]);
    root.style.colorScheme = "light";
    drawn.forEach((node, k) => {
      const look = getComputedStyle(node);
      for (const name of LOOK) copied[k].setAttribute(name, look.getPropertyValue(name));
      for (const name of ["class", "style", "tabindex"]) copied[k].removeAttribute(name);
    });
    root.style.colorScheme = before;
    const [width, tall] = panel.svg.getAttribute("viewBox").split(" ").slice(2).map(Number);
    const pen = make("canvas").getContext("2d"), font = "12px sans-serif", legend = [];
    pen.font = font;
    let [left, top] = [LEFT, 24 + tall + 14];
    for (const [k] of this.shown(panel)) {
      const { name, color, dash } = this.data.curves[k], long = 40 + pen.measureText(name).width;
      if (left > LEFT && left + long > width) [left, top] = [LEFT, top + 18];
      legend.push(svg("path", { d: `M${left},${top}h30`, stroke: color, "stroke-width": 2, "stroke-dasharray": dash }),
        svg("text", { x: left + 36, y: top + 4 }, name));
      left += long + 14;
    }
    const height = top + 14, title = `${named(this.figure)}: ${panel.name}`;
    copy.setAttribute("y", 24);
    copy.setAttribute("width", width);
    const whole = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, style: `font: ${font}`, fill: INK },
      svg("title", {}, title), svg("rect", { width, height, fill: PAPER }),
      svg("text", { x: LEFT, y: 17, "font-weight": "bold" }, title), copy, ...legend);
    const text = new XMLSerializer().serializeToString(whole), file = `${named(this.figure)} ${panel.name}`;
    if (!dots) return download(`${file}.svg`, "image/svg+xml", text);
    const image = new Image(width, height);
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = make("canvas", { width: dots * width, height: dots * height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(blob => download(`${file}.png`, blob.type, blob));
  }
}

const figures = [...document.querySelectorAll("figure.plot")];
const named = figure => figure.name ||= figure.getAttribute("aria-label") || figure.querySelector("img")?.alt || "";
const content = figure => figure.content ||= JSON.parse(figure.querySelector("script").textContent);

const seen = new IntersectionObserver(entries => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) draw(target);
}, { rootMargin: "200px" });
function draw(figure) { seen.unobserve(figure); figure.plot ||= new Plot(figure); }
for (const figure of figures) seen.observe(figure);

// paper shows what is open, seen or not
addEventListener("beforeprint", () => {
  for (const figure of figures) if (!figure.closest("details:not([open])")) draw(figure);
  for (const image of document.querySelectorAll("img")) image.loading = "eager";
});

// ---- the filter: curves of which each word is in the figure's title or the curve's name

const OPEN = 4;
const plain = text => text.toLowerCase().replace(/[-–_]/g, "");
const section = document.querySelector("section[aria-labelledby=figures]");
const filter = make("input", { type: "search", id: "filter", size: 30, placeholder: "ocr mp-bcfw",
  oninput: () => { sieve(); remember(filter.typed); filter.typed = true; },
  onchange: () => { filter.typed = false; } });
const count = make("span", { role: "status" });
if (figures.length) section.querySelector("h2").after(make("p", { class: "filter" },
  make("label", { for: "filter" }, "Only data and solvers with these words: "), filter, " ", count));

function fits(figure, name) {
  const text = plain(`${named(figure)} ${name}`);
  return plain(filter.value).split(/\s+/).every(word => text.includes(word));
}

function sieve() {
  const all = section ? [...section.querySelectorAll("figure")] : [], on = filter.value.trim() != "";
  let left = 0;
  for (const figure of all) {
    const names = figure.matches(".plot") ? content(figure).curves.map(curve => curve.name) : [""];
    const gone = !names.some(name => fits(figure, name)), closed = figure.closest("details");
    for (const place of closed ? [closed] : [figure, figure.previousElementSibling]) place.hidden = gone;
    if (!gone && ++left <= OPEN && on) unfold(figure);
    figure.plot?.draw();
  }
  for (const many of section?.querySelectorAll("details:has(details)") || [])
    many.hidden = !many.querySelector("details:not([hidden])");
  count.textContent = on ? `${left} of ${all.length} figures` : "";
}

// ---- the view in the address: filter=…, then in=TITLE and what was chosen in that figure

function view() {
  const words = new URLSearchParams(filter.value ? { filter: filter.value } : {});
  for (const figure of figures) {
    const chosen = [...figure.plot ? figure.plot.chosen() : figure.chosen || []];
    for (const [word, value] of chosen.length ? [["in", named(figure)], ...chosen] : []) words.append(word, value);
  }
  return String(words);
}

// The browser's back button returns to the view before, unless it is the same entry of its history.
function remember(same) {
  const to = view(), address = to ? `#${to}` : location.pathname + location.search;
  try { history[same ? "replaceState" : "pushState"](to, "", address); } catch { /* a page in a frame has none */ }
}

function restore() {
  let text = location.hash.slice(1), chosen;
  if (text && !/^(filter|in)=/.test(text)) { // a place on the page is no other view
    try { reveal(document.getElementById(decodeURIComponent(text))); } catch { /* no name */ }
    if (history.state == null) {
      try { history.replaceState(view(), ""); } catch { /* as above */ }
      return;
    }
    text = history.state;
  }
  const found = new Map(), words = new URLSearchParams(text);
  for (const [word, value] of words)
    if (word == "in") found.set(value, chosen = found.get(value) || []);
    else chosen?.push([word, value]);
  filter.value = words.get("filter") || "";
  filter.typed = false;
  sieve();
  for (const figure of figures) {
    figure.chosen = found.get(named(figure)) || [];
    figure.plot?.show(figure.chosen);
  }
}

// a link to a closed element opens it
function unfold(element) {
  for (let at = element; at; at = at.parentElement) if (at.tagName == "DETAILS") at.open = true;
}
function reveal(element) {
  unfold(element);
  element?.scrollIntoView();
}
addEventListener("hashchange", restore);
restore();
reveal(figures.find(figure => figure.chosen?.length));
