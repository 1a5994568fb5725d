// @ts-check
// The map: nodes at the places that the engine computed, links coloured by what they do.

import { activity } from "./state.js";

const SVG = "http://www.w3.org/2000/svg";
/** Letters of a name on the screen, pixels: wide and high. */
const [LETTER, LINE] = [7.2, 15];
/** Maps with more links begin with grouped leaves. */
export const BUNDLED_FROM = 200;
const ORDER = ["idle", "low", "middle", "high", "lossy", "down"];

/** @typedef {import("./state.js").Link} Link */
/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/** @typedef {Box & {name: string, note: string, kind: string, names?: string[]}} Place */
/** @typedef {{nodes: Place[], links?: {ends: number[], points: number[][]}[]}} Layer */
/** `grouped`: with the leaves of a node as one. @typedef {Layer & {grouped?: Layer}} Picture */
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

const isHost = (/** @type {Shape} */ shape) => shape.kind.startsWith("host");

export class NetworkMap {
  /** @param {SVGSVGElement} svg @param {import("./state.js").Network} network */
  constructor(svg, network) {
    this.svg = svg;
    this.network = network;
    /** @type {Place[]} */
    this.places = [];
    /** @type {Picture} */
    this.picture = { nodes: [] };
    /** @type {{shape: Shape, group: SVGGElement}[]} */
    this.nodes = [];
    this.isBundled = false;
    this.query = "";
    /** @type {{line: SVGPolylineElement, hit: SVGPolylineElement, links: Link[]}[]} */
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
      const ends = key.split(" ").map((index) => shapes.all[Number(index)]);
      const way = shapes.ways.get(key) ?? ends.map(({ x, y }) => [x, y]);
      const points = { points: way.map((point) => point.join(",")).join(" ") };
      const [line, hit] = [element("polyline", points), element("polyline", points)];
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
    this.nodes = [];
    for (const shape of shapes.all) {
      const group = element("g", { class: `node ${shape.kind}` });
      const { x, y, width, height } = shape;
      const radius = shape.kind.startsWith("host") ? 5 : shape.kind === "router" ? height / 2 : 1;
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
      this.nodes.push({ shape, group });
    }
    this.svg.replaceChildren(lines, hits, nodes);
    this.update();
    this.show();
  }

  /** Shows another picture: the places of nodes and the ways of links. @param {Picture} picture */
  setPicture(picture) {
    this.picture = picture;
    this.places = picture.nodes;
  }

  /** Returns what is drawn, the index of each node's shape, and the way between two shapes. */
  shapes() {
    const drawn = (this.isBundled && this.picture.grouped) || this.picture;
    /** @type {Shape[]} */
    const all = [];
    /** @type {Map<string, number>} */
    const byName = new Map();
    for (const { name, note, kind, x, y, width, height, names = [name] } of drawn.nodes) {
      names.forEach((one) => byName.set(one, all.length));
      const label = name.length > 24 ? `${name.slice(0, 12)}…${name.slice(-11)}` : name;
      const kinds = names.length > 1 ? `${kind} bundle` : kind;
      all.push({ x, y, width, height, label, note, kind: kinds, names });
    }
    /** Of links between the same shapes the straightest. @type {Map<string, number[][]>} */
    const ways = new Map();
    for (const { ends: [a, b], points } of drawn.links ?? []) {
      const key = a < b ? `${a} ${b}` : `${b} ${a}`;
      const known = ways.get(key);
      if (!known || points.length < known.length) ways.set(key, points);
    }
    return { all, byName, ways };
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
    this.svg.classList.toggle("small", scale < 0.45);
    this.name(Math.min(1, scale));
  }

  /** Names keep their size on the screen; of two that would overlap, one is shown. */
  name(/** @type {number} */ scale) {
    this.svg.style.setProperty("--name", `${12 / scale}px`);
    this.svg.style.setProperty("--rim", `${3 / scale}px`);
    this.svg.classList.toggle("far", scale < 0.9);
    const order = this.nodes.map((node, index) => ({ ...node, index }));
    const weight = (/** @type {{shape: Shape, group: SVGGElement}} */ { shape, group }) =>
      Number(group.classList.contains("found")) * 1e6 + shape.names.length * 10 + Number(!isHost(shape));
    order.sort((a, b) => weight(b) - weight(a) || a.index - b.index);
    /** @type {Map<string, Box[]>} */
    const taken = new Map();
    const cell = (24 * LETTER) / scale;
    for (const { shape, group } of order) {
      const width = (shape.label.length * LETTER) / scale;
      const box = { x: shape.x, y: shape.y, width, height: LINE / scale };
      const [column, row] = [Math.floor(box.x / cell), Math.floor(box.y / cell)];
      const near = [-1, 0, 1].flatMap((i) => [-1, 0, 1].map((j) => `${column + i} ${row + j}`));
      const isFree = scale >= 1 || near.every((key) => (taken.get(key) ?? []).every((other) =>
        Math.abs(other.x - box.x) * 2 > other.width + box.width ||
        Math.abs(other.y - box.y) * 2 > other.height + box.height));
      group.classList.toggle("unnamed", !isFree);
      const key = `${column} ${row}`;
      if (isFree) taken.set(key, [...(taken.get(key) ?? []), box]);
    }
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
