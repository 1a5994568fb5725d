// @ts-check
// The map: nodes at the places that the engine computed, links coloured by what they do. Nodes and
// links are reached by the keyboard: Tab enters, arrows go to the nearest one, Enter chooses it.

import { halfWay, outside, shapesOf, waysOf } from "./shapes.js";
import { activity } from "./state.js";

const SVG = "http://www.w3.org/2000/svg";
/** Maps with more links begin with grouped leaves. */
export const BUNDLED_FROM = 200;
/** Names of interfaces are drawn for at most this many lines. */
const INTERFACES_MAX = 400;
const ORDER = ["idle", "low", "middle", "high", "lossy", "down"];
/** Names are drawn at least this large, in pixels of the screen. */
const TEXT_PX = 11;

/** @typedef {import("./state.js").Link} Link */
/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./shapes.js").Way} Way */
/** @typedef {{element: SVGElement, x: number, y: number, choose: (adds: boolean) => void}} Item */

/**
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, string | number>} attributes
 * @returns {SVGElementTagNameMap[K]}
 */
function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/** Whether an event adds to what is chosen. @param {MouseEvent | KeyboardEvent} event */
const adds = (event) => event.shiftKey || event.ctrlKey || event.metaKey;

export class NetworkMap {
  /** @param {SVGSVGElement} svg @param {import("./state.js").Network} network */
  constructor(svg, network) {
    this.svg = svg;
    this.network = network;
    /** @type {import("./shapes.js").Picture} */
    this.picture = { nodes: [] };
    this.isBundled = false;
    this.showsInterfaces = false;
    this.query = "";
    /** @type {{line: SVGPathElement, hit: SVGPathElement, links: Link[]}[]} */
    this.lines = [];
    /** @type {{group: SVGGElement, shape: Shape}[]} */
    this.nodes = [];
    /** What the keyboard reaches. @type {Item[]} */
    this.items = [];
    this.view = { x: 0, y: 0, width: 100, height: 100 };
    this.scale = 0;
    /** @type {(links: Link[], adds: boolean) => void} */
    this.onChoose = () => {};
    /** @type {(names: string[]) => void} */
    this.onNode = () => {};
    this.listen();
  }

  listen() {
    const centre = () => [this.view.x + this.view.width / 2, this.view.y + this.view.height / 2];
    this.zoom = (factor = 1) => {
      const [x, y] = centre();
      zoom(factor, x, y);
    };
    const zoom = (/** @type {number} */ factor, /** @type {number} */ x, /** @type {number} */ y) => {
      const view = this.view;
      view.x = x - (x - view.x) * factor;
      view.y = y - (y - view.y) * factor;
      view.width *= factor;
      view.height *= factor;
      this.show();
    };
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = this.svg.getBoundingClientRect();
      const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
      const factor = event.deltaY > 0 ? 1.15 : 1 / 1.15;
      zoom(factor, this.view.x + x * this.view.width, this.view.y + y * this.view.height);
    }, { passive: false });
    this.svg.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      const step = steps[/** @type {"ArrowLeft"} */ (event.key)];
      const item = this.items.find(({ element }) => element === event.target);
      if (step && item) this.goTo(this.nearest(item, step));
      else if (step) this.move((step[0] * this.view.width) / 10, (step[1] * this.view.width) / 10);
      else if (item && (event.key === "Enter" || event.key === " ")) item.choose(adds(event));
      else if (!item && event.key === "Enter") this.goTo(this.items[0]);
      else if (event.key === "+" || event.key === "=") this.zoom(1 / 1.25);
      else if (event.key === "-") this.zoom(1.25);
      else return;
      event.preventDefault();
    });
    this.svg.addEventListener("focusin", (event) => {
      for (const { element } of this.items) {
        if (element.getAttribute("tabindex") === "0") element.setAttribute("tabindex", "-1");
      }
      const item = this.items.find(({ element }) => element === event.target) ?? this.items[0];
      item?.element.setAttribute("tabindex", "0");
    });
    /** @type {{x: number, y: number} | null} */
    let grip = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.target === this.svg) grip = { x: event.clientX, y: event.clientY };
    });
    addEventListener("pointermove", (event) => {
      if (!grip) return;
      const scale = this.view.width / this.svg.getBoundingClientRect().width;
      this.move((grip.x - event.clientX) * scale, (grip.y - event.clientY) * scale);
      grip = { x: event.clientX, y: event.clientY };
    });
    addEventListener("pointerup", () => { grip = null; });
  }

  /** Moves the view. @param {number} x @param {number} y */
  move(x, y) {
    this.view.x += x;
    this.view.y += y;
    this.show();
  }

  /**
   * Returns the nearest node or link in a direction; undefined if there is none.
   * @param {{x: number, y: number}} from
   * @param {number[]} step
   */
  nearest(from, [stepX, stepY]) {
    let [best, least] = [/** @type {Item | undefined} */ (undefined), Infinity];
    for (const item of this.items) {
      const [dx, dy] = [item.x - from.x, item.y - from.y];
      const along = dx * stepX + dy * stepY;
      const across = Math.abs(dx * stepY) + Math.abs(dy * stepX);
      // Within 60 degrees of the direction.
      if (along <= 0.5 || across > 1.75 * along) continue;
      const far = along + 2 * across;
      if (far < least) [best, least] = [item, far];
    }
    return best;
  }

  /** Moves the focus to a node or link, and the view to it. @param {Item | undefined} item */
  goTo(item) {
    if (!item) return;
    item.element.focus({ preventScroll: true });
    const { x, y, width, height } = this.view;
    const isSeen = item.x > x && item.x < x + width && item.y > y && item.y < y + height;
    if (!isSeen) this.move(item.x - x - width / 2, item.y - y - height / 2);
  }

  /** Draws all nodes and links again. */
  draw() {
    const focused = document.activeElement?.getAttribute("data-key");
    const { links } = this.network;
    const shapes = shapesOf(this.picture, this.isBundled);
    const ways = waysOf(this.picture, links, this.isBundled, shapes);
    const [lines, hits, ports, nodes] =
      ["lines", "hits", "ports", "nodes"].map((name) => element("g", { class: name }));
    this.items = [];
    this.lines = ways.map((way) => this.drawWay(way, lines, hits));
    if (this.showsInterfaces && !this.isBundled && ways.length <= INTERFACES_MAX) {
      ways.forEach((way) => drawInterfaces(way, shapes, ports));
    }
    this.nodes = shapes.all.map((shape) => this.drawNode(shape, nodes));
    // Nodes come first for the keyboard.
    this.items.reverse();
    this.items[0]?.element.setAttribute("tabindex", "0");
    const empty = element("text", { class: "empty", x: 0, y: 0 });
    empty.textContent = shapes.all.length === 0 ? "The network has no nodes." : "";
    this.svg.replaceChildren(lines, hits, ports, nodes, ...(shapes.all.length === 0 ? [empty] : []));
    this.items.find(({ element }) => element.getAttribute("data-key") === focused)?.element.focus();
    this.scale = 0;
    this.show();
    this.update();
  }

  /** @param {Way} way @param {SVGGElement} lines @param {SVGGElement} hits */
  drawWay({ links, points }, lines, hits) {
    const d = points.map(([x, y], i) => `${i === 0 ? "M" : "L"}${x} ${y}`).join("");
    const names = links.slice(0, 8).map((link) => link.name).join(", ");
    const text = links.length > 8 ? `${names} and ${links.length - 8} more` : names;
    const line = element("path", { d });
    const hit = element("path", {
      d, class: "hit", role: "button", tabindex: -1, "data-key": `link ${links[0].name}`,
      "aria-label": `link ${text}, from ${links[0].ends.join(" to ")}`,
    });
    const title = element("title", {});
    title.textContent = text;
    hit.append(title);
    hit.addEventListener("click", (event) => this.onChoose(links, adds(event)));
    lines.append(line);
    hits.append(hit);
    const [x, y] = halfWay(points);
    this.items.push({ element: hit, x, y, choose: (adds) => this.onChoose(links, adds) });
    return { line, hit, links };
  }

  /** @param {Shape} shape @param {SVGGElement} nodes */
  drawNode(shape, nodes) {
    const { x, y, width, height, kind, names } = shape;
    const isFound = this.query !== "" && names.some((name) => name.toLowerCase().includes(this.query));
    const what = names.length > 1 ? `${names.length} nodes, the first is ${names[0]}` : `${kind} ${names[0]}`;
    const group = element("g", {
      class: `node ${kind}${isFound ? " found" : ""}`, role: "button", tabindex: -1,
      "aria-label": what, "data-key": `node ${names[0]}`,
    });
    const round = height / 2;
    const radius = { host: 6, router: round, nat: round, outside: round }[kind.split(" ")[0]] ?? 0;
    group.append(element("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: radius }));
    if (kind === "openflow" || kind === "nat") {
      const inner = { x: x - width / 2 + 3, y: y - height / 2 + 3, width: width - 6, height: height - 6 };
      group.append(element("rect", { ...inner, rx: Math.max(0, radius - 3), class: "inner" }));
    }
    const label = element("text", { x, y: shape.note ? y - 2 : y + 4 });
    label.textContent = shape.label;
    group.append(label);
    if (shape.note) {
      const note = element("text", { x, y: y + 12, class: "note" });
      note.textContent = shape.note;
      group.append(note);
    }
    const title = element("title", {});
    title.textContent = names.slice(0, 20).join(", ");
    group.append(title);
    group.addEventListener("click", () => this.onNode(names));
    nodes.append(group);
    this.items.push({ element: group, x, y, choose: () => this.onNode(names) });
    return { group, shape };
  }

  /** Returns the box of everything, with a margin. */
  box(margin = 20) {
    const edges = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
    for (const { shape: { x, y, width, height } } of this.nodes) {
      edges.left = Math.min(edges.left, x - width / 2 - margin);
      edges.top = Math.min(edges.top, y - height / 2 - margin);
      edges.right = Math.max(edges.right, x + width / 2 + margin);
      edges.bottom = Math.max(edges.bottom, y + height / 2 + margin);
    }
    const empty = { left: -100, top: -50, right: 100, bottom: 50 };
    const { left, top, right, bottom } = this.nodes.length > 0 ? edges : empty;
    return { x: left, y: top, width: right - left, height: bottom - top };
  }

  /** Shows everything. */
  fit() {
    const box = this.svg.getBoundingClientRect();
    const ratio = box.width / box.height || 1;
    // The view has the shape of its place, and small networks are not enlarged.
    const widthOf = (/** @type {{width: number, height: number}} */ all) =>
      Math.max(all.width, all.height * ratio, box.width / 1.6);
    // Names beside nodes need room.
    const px = widthOf(this.box()) / (box.width || 1);
    const all = this.box(px > 1 ? 20 + 2 * TEXT_PX * px : 20);
    const width = widthOf(all);
    this.view = {
      x: all.x - (width - all.width) / 2,
      y: all.y - (width / ratio - all.height) / 2,
      width,
      height: width / ratio,
    };
    this.show();
  }

  show() {
    const { x, y, width, height } = this.view;
    this.svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
    const scale = this.svg.getBoundingClientRect().width / width;
    if (Math.abs(scale - this.scale) > 0.01 * scale) {
      this.scale = scale;
      this.label();
    }
  }

  /**
   * Names keep their size on the screen where the map is small. One that would cover another is
   * beside its node, or else left out: what is found comes first, then groups, then nodes
   * that forward.
   */
  label() {
    const px = 1 / (this.scale || 1);
    const isSmall = 12 < TEXT_PX * px;
    this.svg.classList.toggle("small", isSmall);
    const size = Math.max(12, TEXT_PX * px);
    const rank = (/** @type {Shape} */ { kind, names }) =>
      (this.query !== "" && names.some((name) => name.toLowerCase().includes(this.query)) ? 0
        : kind.includes("bundle") ? 1 : kind === "host" ? 3 : 2);
    const sorted = isSmall ? [...this.nodes].sort((a, b) => rank(a.shape) - rank(b.shape)) : this.nodes;
    /** Boxes of names, by cells of a grid. @type {Map<string, number[][]>} */
    const taken = new Map();
    const cell = 8 * size;
    for (const { group, shape } of sorted) {
      const half = 0.31 * size * shape.label.length;
      const [across, aside] = [shape.width / 2 + half + 0.2 * size, shape.height / 2 + 0.6 * size];
      const places = [[0, 0], [0, aside], [0, -aside], [across, 0], [-across, 0]];
      const free = (isSmall ? places : [[0, 0]]).find(([dx, dy]) => {
        const [x, y] = [shape.x + dx, shape.y + dy];
        const box = [x - half, y - 0.5 * size, x + half, y + 0.5 * size];
        const cells = [];
        const [left, top, right, bottom] = box.map((edge) => Math.floor(edge / cell));
        for (let i = left; i <= right; i += 1) {
          for (let j = top; j <= bottom; j += 1) cells.push(`${i} ${j}`);
        }
        const overlaps = (/** @type {number[]} */ other) =>
          other[0] < box[2] && box[0] < other[2] && other[1] < box[3] && box[1] < other[3];
        if (isSmall && cells.some((cell) => taken.get(cell)?.some(overlaps))) return false;
        cells.forEach((cell) => taken.set(cell, [...(taken.get(cell) ?? []), box]));
        return true;
      });
      group.classList.toggle("unnamed", free === undefined);
      for (const text of group.querySelectorAll("text")) {
        const isNote = text.classList.contains("note");
        const [dx, dy] = free ?? [0, 0];
        if (!isNote) {
          text.setAttribute("x", String(shape.x + dx));
          text.setAttribute("y", String(shape.note && !isSmall ? shape.y - 2 : shape.y + dy + size / 3));
        }
        text.setAttribute("font-size", String(isNote ? 10 : size));
      }
    }
    const ofPorts = String(Math.max(9, 9 * px));
    this.svg.querySelectorAll(".ports text").forEach((text) => text.setAttribute("font-size", ofPorts));
    this.svg.classList.toggle("tiny", this.scale < 0.6);
  }

  /** Colours the links. */
  update() {
    for (const { line, hit, links } of this.lines) {
      let [kind, load, chosen, found] = ["idle", 0, false, false];
      for (const link of links) {
        const now = activity(link);
        if (ORDER.indexOf(now.kind) > ORDER.indexOf(kind)) kind = now.kind;
        load = Math.max(load, now.load);
        chosen ||= link.chosen;
        found ||= this.query !== "" && link.name.toLowerCase().includes(this.query);
      }
      const marks = [chosen && "chosen", found && "found", links.length > 1 && "many"].filter(Boolean);
      const names = ["link", kind, ...marks].join(" ");
      if (line.getAttribute("class") !== names) {
        line.setAttribute("class", names);
        hit.setAttribute("aria-pressed", String(chosen));
      }
      const width = (1.5 + 3 * Math.min(1, load)).toFixed(1);
      if (line.getAttribute("stroke-width") !== width) line.setAttribute("stroke-width", width);
    }
  }

  /** Returns the map as an SVG file, as it looks now. @param {string} title */
  file(title) {
    const style = getComputedStyle(document.documentElement);
    const value = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    const isOfMap = (/** @type {string} */ selector) => /\.(link|node|ports|empty)|svg\./.test(selector);
    const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
      .filter((rule) => rule instanceof CSSStyleRule && isOfMap(rule.selectorText))
      .map((rule) => rule.cssText.replace(/var\((--\w+)\)/g, (_, name) => value(name)));
    const copy = /** @type {SVGSVGElement} */ (this.svg.cloneNode(true));
    copy.querySelector(".hits")?.remove();
    copy.querySelectorAll("[role]").forEach((element) => {
      for (const name of ["role", "tabindex", "aria-label", "data-key"]) element.removeAttribute(name);
    });
    for (const name of ["id", "tabindex", "role", "aria-label"]) copy.removeAttribute(name);
    const { x, y, width, height } = this.box();
    copy.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
    copy.setAttribute("width", String(Math.round(width)));
    copy.setAttribute("height", String(Math.round(height)));
    const back = element("rect", { x, y, width, height, fill: value("--back") });
    const name = element("title", {});
    name.textContent = title;
    copy.prepend(name, back);
    const text = new XMLSerializer().serializeToString(copy);
    return text.replace(/^<svg[^>]*>/, (start) => `${start}<style>${rules.join("\n")}</style>`);
  }
}

/**
 * Writes the names of interfaces where a line leaves its nodes.
 * @param {Way} way
 * @param {{all: Shape[], byName: Map<string, number>}} shapes
 * @param {SVGGElement} ports
 */
function drawInterfaces({ links, points }, shapes, ports) {
  const [a] = links[0].ends.map((end) => shapes.all[shapes.byName.get(end) ?? 0]);
  const isForward = Math.hypot(points[0][0] - a.x, points[0][1] - a.y) <= 1;
  links[0].ends.forEach((end, i) => {
    const shape = shapes.all[shapes.byName.get(end) ?? 0];
    const way = (i === 0) === isForward ? points : [...points].reverse();
    const names = [...new Set(links.map((link) => link.interfaces[link.ends[i] === end ? i : 1 - i]))];
    const name = names.length > 2 ? `${names[0]} +${names.length - 1}` : names.join(",");
    const [x, y] = outside(way, shape, { width: 5.6 * name.length + 6, height: 14 });
    const text = element("text", { x, y: y + 3 });
    text.textContent = name;
    ports.append(text);
  });
}
