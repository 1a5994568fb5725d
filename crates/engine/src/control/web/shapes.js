// @ts-check
// What the map draws: shapes for nodes or for the leaves of a node, and the ways of links between
// them, from the answer of the engine to GET /picture.

const LABEL_MAX = 24;

/** @typedef {import("./state.js").Link} Link */
/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/** @typedef {Box & {name: string, note: string, kind: string, names?: string[]}} Place */
/** @typedef {Box & {label: string, note: string, kind: string, names: string[]}} Shape */
/** @typedef {[number, number]} Point */
/** @typedef {{nodes: Place[], links?: {name: string, points: Point[]}[]}} Drawing */
/** @typedef {Drawing & {grouped?: Drawing}} Picture */
/** A line of the map: the links on it, and its points. @typedef {{links: Link[], points: Point[]}} Way */

/** @param {string} name */
const shortened = (name) => (name.length > LABEL_MAX ? `${name.slice(0, 12)}…${name.slice(-11)}` : name);

/**
 * Returns the shapes of a picture, and the index of each node's shape.
 * @param {Picture} picture
 * @param {boolean} isBundled
 */
export function shapesOf(picture, isBundled) {
  /** @type {Shape[]} */
  const all = [];
  /** @type {Map<string, number>} */
  const byName = new Map();
  const drawing = isBundled ? picture.grouped ?? picture : picture;
  for (const place of drawing.nodes) {
    const { name, note, x, y, width, height } = place;
    const names = place.names ?? [name];
    const kind = names.length > 1 ? `${place.kind} bundle` : place.kind;
    names.forEach((name) => byName.set(name, all.length));
    all.push({ x, y, width, height, label: shortened(name), note, kind, names });
  }
  return { all, byName };
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
  const drawing = isBundled ? picture.grouped ?? picture : picture;
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
