// @ts-check
// The map: nodes at the places that the engine computed, links coloured by what they do.

import { activity } from "./state.js";

const SVG = "http://www.w3.org/2000/svg";
/** Leaves of one node that are drawn as one, if leaves are grouped. */
const BUNDLE_MIN = 4;
/** Maps with more links begin with grouped leaves. */
export const BUNDLED_FROM = 200;
const ORDER = ["idle", "low", "middle", "high", "lossy", "down"];

/** @typedef {import("./state.js").Link} Link */
/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/** @typedef {Box & {name: string, note: string, kind: string}} Place */
/** @typedef {Box & {label: string, note: string, kind: string, names: string[]}} Shape */

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

/** Returns the middle of places. @param {Place[]} all */
function middle(all) {
  const mean = (/** @type {"x" | "y"} */ axis) =>
    all.reduce((sum, place) => sum + place[axis], 0) / Math.max(1, all.length);
  return { x: mean("x"), y: mean("y") };
}

export class NetworkMap {
  /** @param {SVGSVGElement} svg @param {import("./state.js").Network} network */
  constructor(svg, network) {
    this.svg = svg;
    this.network = network;
    /** @type {Place[]} */
    this.places = [];
    this.isBundled = false;
    this.query = "";
    /** @type {{line: SVGLineElement, hit: SVGLineElement, links: Link[]}[]} */
    this.lines = [];
    this.view = { x: 0, y: 0, width: 100, height: 100 };
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
      const step = this.view.width / 10;
      const moves = {
        ArrowLeft: [-step, 0],
        ArrowRight: [step, 0],
        ArrowUp: [0, -step],
        ArrowDown: [0, step],
      };
      const move = moves[/** @type {"ArrowLeft"} */ (event.key)];
      const [x, y] = centre();
      if (move) {
        this.view.x += move[0];
        this.view.y += move[1];
        this.show();
      } else if (event.key === "+" || event.key === "=") zoom(1 / 1.25, x, y);
      else if (event.key === "-") zoom(1.25, x, y);
      else return;
      event.preventDefault();
    });
    /** @type {{x: number, y: number} | null} */
    let grip = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.target === this.svg) grip = { x: event.clientX, y: event.clientY };
    });
    addEventListener("pointermove", (event) => {
      if (!grip) return;
      const scale = this.view.width / this.svg.getBoundingClientRect().width;
      this.view.x -= (event.clientX - grip.x) * scale;
      this.view.y -= (event.clientY - grip.y) * scale;
      grip = { x: event.clientX, y: event.clientY };
      this.show();
    });
    addEventListener("pointerup", () => { grip = null; });
  }

  /** Draws all nodes and links again. */
  draw() {
    const shapes = this.shapes();
    const [lines, hits, nodes] = ["lines", "hits", "nodes"].map((name) => element("g", { class: name }));
    /** Links between the same shapes are one line. @type {Map<string, Link[]>} */
    const together = new Map();
    for (const link of this.network.links) {
      const [a, b] = link.ends.map((end) => shapes.byName.get(end));
      if (a === undefined || b === undefined || a === b) continue;
      const key = a < b ? `${a} ${b}` : `${b} ${a}`;
      const list = together.get(key);
      if (list) list.push(link);
      else together.set(key, [link]);
    }
    this.lines = [];
    for (const [key, links] of together) {
      const [a, b] = key.split(" ").map((index) => shapes.all[Number(index)]);
      const place = { x1: a.x, y1: a.y, x2: b.x, y2: b.y };
      const [line, hit] = [element("line", place), element("line", place)];
      const title = element("title", {});
      const names = links.slice(0, 8).map((link) => link.name).join(", ");
      title.textContent = links.length > 8 ? `${names} and ${links.length - 8} more` : names;
      hit.append(title);
      hit.addEventListener("click", (event) => {
        this.onChoose(links, event.shiftKey || event.ctrlKey || event.metaKey);
      });
      lines.append(line);
      hits.append(hit);
      this.lines.push({ line, hit, links });
    }
    for (const shape of shapes.all) {
      const group = element("g", { class: `node ${shape.kind}` });
      const { x, y, width, height } = shape;
      const radius = shape.kind === "host" ? 5 : shape.kind === "router" ? height / 2 : 1;
      group.append(element("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: radius }));
      const label = element("text", { x, y: shape.note ? y - 2 : y + 4 });
      label.textContent = shape.label;
      group.append(label);
      if (shape.note) {
        const note = element("text", { x, y: y + 12, class: "note" });
        note.textContent = shape.note;
        group.append(note);
      }
      const isFound = this.query && shape.names.some((name) => name.toLowerCase().includes(this.query));
      group.classList.toggle("found", Boolean(isFound));
      group.addEventListener("click", () => this.onNode(shape.names));
      nodes.append(group);
    }
    this.svg.replaceChildren(lines, hits, nodes);
    this.update();
  }

  /** Returns what is drawn, and the index of each node's shape. */
  shapes() {
    /** @type {Map<string, Set<string>>} */
    const neighbors = new Map(this.places.map((place) => [place.name, new Set()]));
    for (const { ends: [a, b] } of this.network.links) {
      neighbors.get(a)?.add(b);
      neighbors.get(b)?.add(a);
    }
    /** The leaves of each node. @type {Map<string, Place[]>} */
    const leaves = new Map();
    for (const place of this.isBundled ? this.places : []) {
      const near = neighbors.get(place.name);
      if (near?.size !== 1) continue;
      const [of] = near;
      if ((neighbors.get(of)?.size ?? 0) > 1) leaves.set(of, [...(leaves.get(of) ?? []), place]);
    }
    /** @type {Shape[]} */
    const all = [];
    /** @type {Map<string, number>} */
    const byName = new Map();
    const add = (/** @type {Shape} */ shape) => {
      shape.names.forEach((name) => byName.set(name, all.length));
      all.push(shape);
    };
    const centre = middle(this.places);
    for (const [of, group] of leaves) {
      const hub = this.places.find((place) => place.name === of);
      if (group.length < BUNDLE_MIN || !hub) continue;
      // Outside of its node, as seen from the middle of the map.
      const [dx, dy] = [hub.x - centre.x, hub.y - centre.y];
      const far = Math.hypot(dx, dy);
      const [x, y] = far < 1 ? [hub.x, hub.y + 90] : [hub.x + (130 * dx) / far, hub.y + (90 * dy) / far];
      const names = group.map((place) => place.name);
      const label = `${group.length} × ${names[0].slice(0, 12)} …`;
      const width = 24 + 7.2 * label.length;
      add({ x, y, width, height: 32, label, note: "", kind: "host bundle", names });
    }
    for (const place of this.places) {
      const { name, note, kind, x, y, width, height } = place;
      const label = name.length > 24 ? `${name.slice(0, 23)}…` : name;
      if (!byName.has(name)) add({ x, y, width, height, label, note, kind, names: [name] });
    }
    return { all, byName };
  }

  /** Shows everything. */
  fit() {
    const shapes = this.shapes().all;
    if (shapes.length === 0) return;
    const margin = 20;
    const edges = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
    for (const { x, y, width, height } of shapes) {
      edges.left = Math.min(edges.left, x - width / 2 - margin);
      edges.top = Math.min(edges.top, y - height / 2 - margin);
      edges.right = Math.max(edges.right, x + width / 2 + margin);
      edges.bottom = Math.max(edges.bottom, y + height / 2 + margin);
    }
    const { left, top, right, bottom } = edges;
    this.view = { x: left, y: top, width: right - left, height: bottom - top };
    const box = this.svg.getBoundingClientRect();
    const ratio = box.width / box.height || 1;
    // The view has the shape of its place, and small networks are not enlarged.
    const width = Math.max(this.view.width, this.view.height * ratio, box.width / 1.6);
    this.view = {
      x: this.view.x - (width - this.view.width) / 2,
      y: this.view.y - (width / ratio - this.view.height) / 2,
      width,
      height: width / ratio,
    };
    this.show();
  }

  show() {
    const { x, y, width, height } = this.view;
    this.svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
    const scale = this.svg.getBoundingClientRect().width / width;
    // Texts that are too small to read are not drawn.
    this.svg.classList.toggle("small", scale < 0.45);
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
      if (line.getAttribute("class") !== names) line.setAttribute("class", names);
      if (hit.getAttribute("class") !== "hit") hit.setAttribute("class", "hit");
      const width = (1.5 + 3 * Math.min(1, load)).toFixed(1);
      if (line.getAttribute("stroke-width") !== width) line.setAttribute("stroke-width", width);
    }
  }
}
