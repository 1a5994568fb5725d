// @ts-check
// What the map draws: shapes for nodes or for the leaves of a node, and the ways of links between
// them, from the answer of the engine to GET /picture.

/** Leaves of one node that are drawn as one, if leaves are grouped. */
const BUNDLE_MIN = 4;
const LABEL_MAX = 24;

/** @typedef {import("./state.js").Link} Link */
/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/** @typedef {Box & {name: string, note: string, kind: string, names?: string[]}} Place */
/** @typedef {Box & {label: string, note: string, kind: string, names: string[]}} Shape */
/** @typedef {[number, number]} Point */
/** @typedef {{nodes: Place[], links?: {name: string, points: Point[]}[]}} Drawing */
/** @typedef {Drawing & {grouped?: Drawing}} Picture */
/** A line of the map: the links on it, and its points. @typedef {{links: Link[], points: Point[]}} Way */

/** Returns the middle of places. @param {Place[]} all */
function middle(all) {
  const mean = (/** @type {"x" | "y"} */ axis) =>
    all.reduce((sum, place) => sum + place[axis], 0) / Math.max(1, all.length);
  return { x: mean("x"), y: mean("y") };
}

/** @param {string} name */
const shortened = (name) => (name.length > LABEL_MAX ? `${name.slice(0, LABEL_MAX - 1)}…` : name);

/**
 * Returns the shapes of a picture, and the index of each node's shape.
 * @param {Picture} picture
 * @param {Link[]} links
 * @param {boolean} isBundled
 */
export function shapesOf(picture, links, isBundled) {
  /** @type {Shape[]} */
  const all = [];
  /** @type {Map<string, number>} */
  const byName = new Map();
  const add = (/** @type {Shape} */ shape) => {
    shape.names.forEach((name) => byName.set(name, all.length));
    all.push(shape);
  };
  const drawing = isBundled ? picture.grouped ?? picture : picture;
  if (isBundled && !picture.grouped) bundles(picture.nodes, links).forEach(add);
  for (const place of drawing.nodes) {
    const { name, note, x, y, width, height } = place;
    const names = place.names ?? [name];
    if (names.some((name) => byName.has(name))) continue;
    const kind = names.length > 1 ? `${place.kind} bundle` : place.kind;
    add({ x, y, width, height, label: shortened(name), note, kind, names });
  }
  return { all, byName };
}

/** Returns shapes for the leaves of nodes that have many. @param {Place[]} places @param {Link[]} links */
function bundles(places, links) {
  /** @type {Map<string, Set<string>>} */
  const neighbors = new Map(places.map((place) => [place.name, new Set()]));
  for (const { ends: [a, b] } of links) {
    neighbors.get(a)?.add(b);
    neighbors.get(b)?.add(a);
  }
  /** The leaves of each node. @type {Map<string, Place[]>} */
  const leaves = new Map();
  for (const place of places) {
    const near = neighbors.get(place.name);
    if (near?.size !== 1) continue;
    const [of] = near;
    if ((neighbors.get(of)?.size ?? 0) > 1) leaves.set(of, [...(leaves.get(of) ?? []), place]);
  }
  const centre = middle(places);
  /** @type {Shape[]} */
  const found = [];
  for (const [of, group] of leaves) {
    const hub = places.find((place) => place.name === of);
    if (group.length < BUNDLE_MIN || !hub) continue;
    // Outside of its node, as seen from the middle of the map.
    const [dx, dy] = [hub.x - centre.x, hub.y - centre.y];
    const far = Math.hypot(dx, dy);
    const [x, y] = far < 1 ? [hub.x, hub.y + 90] : [hub.x + (130 * dx) / far, hub.y + (90 * dy) / far];
    const names = group.map((place) => place.name);
    const label = `${group.length} × ${names[0].slice(0, 12)} …`;
    found.push({ x, y, width: 24 + 7.2 * label.length, height: 32, label, note: "", kind: "host bundle", names });
  }
  return found;
}

/**
 * Returns the lines between shapes. Links of one way are one line.
 * @param {Picture} picture
 * @param {Link[]} links
 * @param {boolean} isBundled
 * @param {{all: Shape[], byName: Map<string, number>}} shapes
 * @returns {Way[]}
 */
export function waysOf(picture, links, isBundled, shapes) {
  const drawing = isBundled ? picture.grouped ?? { nodes: [] } : picture;
  /** Ways by their links, or in a grouped picture by their shapes. @type {Map<string, Point[]>} */
  const drawn = new Map();
  const pair = (/** @type {number} */ a, /** @type {number} */ b) => (a < b ? `${a} ${b}` : `${b} ${a}`);
  const ends = new Map(isBundled ? links.map((link) => [link.name, link.ends]) : []);
  for (const { name, points } of drawing.links ?? []) {
    const [a, b] = (ends.get(name) ?? []).map((end) => shapes.byName.get(end));
    if (!isBundled) drawn.set(name, points);
    else if (a !== undefined && b !== undefined) drawn.set(pair(a, b), points);
  }
  /** @type {Map<string, Way>} */
  const ways = new Map();
  for (const link of links) {
    const [a, b] = link.ends.map((end) => shapes.byName.get(end));
    if (a === undefined || b === undefined || (a === b && (isBundled || !drawn.has(link.name)))) continue;
    const [from, to] = [shapes.all[Math.min(a, b)], shapes.all[Math.max(a, b)]];
    const points = drawn.get(isBundled ? pair(a, b) : link.name) ?? [[from.x, from.y], [to.x, to.y]];
    const key = `${pair(a, b)} ${points}`;
    const way = ways.get(key);
    if (way) way.links.push(link);
    else ways.set(key, { links: [link], points });
  }
  return [...ways.values()];
}

/** Returns the point in the middle of a way. @param {Point[]} points @returns {Point} */
export function halfWay(points) {
  const lengths = points.slice(1).map(([x, y], i) => Math.hypot(x - points[i][0], y - points[i][1]));
  let left = lengths.reduce((sum, length) => sum + length, 0) / 2;
  for (const [i, length] of lengths.entries()) {
    if (left <= length) {
      const part = length === 0 ? 0 : left / length;
      const [[x, y], [nextX, nextY]] = [points[i], points[i + 1]];
      return [x + part * (nextX - x), y + part * (nextY - y)];
    }
    left -= length;
  }
  return points[0];
}

/**
 * Returns the first point of a way at which a text of this size is outside of a box in which the
 * way begins.
 * @param {Point[]} points
 * @param {Box} box
 * @param {{width: number, height: number}} text
 * @returns {Point}
 */
export function outside(points, box, { width, height }) {
  const isIn = (/** @type {Point} */ [x, y]) =>
    Math.abs(x - box.x) <= (box.width + width) / 2 && Math.abs(y - box.y) <= (box.height + height) / 2;
  for (let i = 0; i + 1 < points.length; i += 1) {
    const [[x, y], [nextX, nextY]] = [points[i], points[i + 1]];
    for (let step = 0; step <= 40; step += 1) {
      /** @type {Point} */
      const point = [x + (step / 40) * (nextX - x), y + (step / 40) * (nextY - y)];
      if (!isIn(point)) return point;
    }
  }
  return halfWay(points);
}
