// @ts-check
// The state of the network, from GET /events, and requests to the engine.

/** Samples that charts keep: two minutes. */
const KEPT = 300;
/** A sample that comes later than this many periods after the one before ends a gap. */
const GAP_PERIODS = 2.5;
/** With at most this many links all of them keep samples; otherwise the chosen ones do. */
const KEEP_ALL_MAX = 100;

/** The token is after # in the address of the page: a browser does not send that part. */
const token = new URLSearchParams(location.hash.slice(1)).get("token");

/** @param {string} path @param {RequestInit} [options] */
export function request(path, options = {}) {
  const headers = { ...(token ? { authorization: `Bearer ${token}` } : {}), ...options.headers };
  return fetch(path, { ...options, headers, cache: "no-store" });
}

/**
 * Sends JSON. Returns the answer, or throws an error with its text.
 * @param {string} path
 * @param {unknown} [body]
 */
export async function post(path, body) {
  const headers = { "content-type": "application/json" };
  const text = body === undefined ? "" : JSON.stringify(body);
  const answer = await request(path, { method: "POST", headers, body: text });
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error);
  return data;
}

/**
 * A link. `interfaces` has the names of its interfaces at its first end and its second.
 * @typedef {{name: string, ends: [string, string], interfaces: [string, string],
 *   directions: Direction[], chosen: boolean}} Link
 */

/**
 * What charts show of a direction at one instant. A rate is that of the time since the sample
 * before; null is a value that was not sampled.
 * @typedef {object} Sample
 * @property {number} atS
 * @property {number} inMbit
 * @property {number} outMbit
 * @property {number | null} queuedFrames
 * @property {number | null} queueingDelayMs
 * @property {number | null} delayMs The delay of the link and that of its queue.
 * @property {number} dropsPerS
 * @property {number} marksPerS
 * @property {number | null} latenessMs Of frames since the sample before.
 * @property {number | null} intendedMbit The rate of the link; null: unlimited.
 * @property {number} intendedDelayMs The delay of the link.
 * @property {number} toleranceMs
 */

/** What is not known of a gap. */
const UNKNOWN = { queuedFrames: null, queueingDelayMs: null, delayMs: null, latenessMs: null };

/** One direction of a link. */
export class Direction {
  /** @param {any} parameters @param {string} from @param {string} to */
  constructor(parameters, from, to) {
    this.parameters = parameters;
    this.from = from;
    this.to = to;
    /** The counters; the lateness is null without a frame. @type {Record<string, any>} */
    this.now = {};
    this.inBps = 0;
    this.outBps = 0;
    this.dropsPerS = 0;
    this.marksPerS = 0;
    /** The used fraction of the rate. @type {number | null} */
    this.load = null;
    /** @type {Sample[]} */
    this.history = [];
  }

  /**
   * Returns the value under a key of a link, as a spec has it.
   * @param {string} key
   * @param {Record<string, any>} defaults
   */
  value(key, defaults) {
    return this.parameters.values[key] ?? defaults[key];
  }

  /** Returns the active trace that sets the value under a key; null: none. @param {string} key */
  tracedBy(key) {
    for (const text of this.parameters.traces ?? []) {
      const at = text.lastIndexOf(": ");
      if (text.slice(at + 2).split(", ").includes(key)) return text.slice(0, at);
    }
    return null;
  }

  /**
   * Takes the counters of a sample `seconds` after the one before.
   * @param {Record<string, any>} next
   * @param {number} seconds
   */
  update(next, seconds) {
    const rate = (/** @type {string} */ field) => {
      const before = this.now[field] ?? next[field];
      return Math.max(0, (next[field] - before) / seconds);
    };
    this.inBps = 8 * rate("bytes_in");
    this.outBps = 8 * rate("bytes_out");
    this.marksPerS = rate("marked");
    this.dropsPerS = 0;
    for (const field of Object.keys(next)) {
      if (field.startsWith("dropped.")) this.dropsPerS += rate(field);
    }
    // Without a change since the sample before nothing has moved.
    this.load = bitsOf(this.parameters.rate) ? (next !== this.now && next.load) || 0 : null;
    this.now = next;
  }

  /** Forgets the samples: those that follow are of another run. */
  forget() {
    this.now = {};
    this.history.length = 0;
  }

  /**
   * Returns the frames dropped and marked since the start: `3 queue-full, 1 loss, 2 marked`; empty
   * if there are none.
   */
  losses() {
    const isLoss = (/** @type {string} */ field) => field === "marked" || field.startsWith("dropped.");
    const counts = Object.entries(this.now).filter(([field, count]) => count > 0 && isLoss(field));
    return counts.map(([field, count]) => `${count} ${field.replace("dropped.", "")}`).join(", ");
  }

  /**
   * Keeps the sample at `at`. `gapFrom` is the time of the one before, if there were none in
   * between for long: the charts show the mean rates from then on, and no line of what is sampled.
   * @param {number} at
   * @param {boolean} isKept
   * @param {number | null} gapFrom
   * @param {number} toleranceMs
   */
  keep(at, isKept, gapFrom, toleranceMs) {
    if (!isKept) {
      this.history.length = 0;
      return;
    }
    const { queued_frames: queuedFrames, queueing_delay_us: delayUs, lateness_p99_us: latenessUs } = this.now;
    const bps = bitsOf(this.parameters.rate);
    const intended = {
      intendedMbit: bps === null ? null : bps / 1e6,
      intendedDelayMs: millisOf(this.parameters.delay),
      toleranceMs,
    };
    const rates = {
      ...intended,
      inMbit: this.inBps / 1e6,
      outMbit: this.outBps / 1e6,
      dropsPerS: this.dropsPerS,
      marksPerS: this.marksPerS,
    };
    if (gapFrom !== null && this.history.length > 0) {
      const atS = gapFrom + Math.min(1e-3, (at - gapFrom) / 2);
      this.history.push({ atS, ...rates, ...UNKNOWN });
    }
    const queueingDelayMs = delayUs / 1000;
    const delayMs = queueingDelayMs + intended.intendedDelayMs;
    const latenessMs = latenessUs === null ? null : latenessUs / 1000;
    this.history.push({ atS: at, ...rates, queuedFrames, queueingDelayMs, delayMs, latenessMs });
    while (this.history.length > KEPT) this.history.shift();
  }
}

/** Returns a value as a spec has it: a text without quotes, a table as TOML. @param {any} value */
export function textOf(value) {
  return typeof value === "string" ? value : inline(value);
}

/** Returns a value as an inline value of TOML. @param {any} value @returns {string} */
function inline(value) {
  if (Array.isArray(value)) return `[${value.map(inline).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const key = (/** @type {string} */ name) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : inline(name));
    const isFirst = (/** @type {string} */ name) => Number(name === "kind" || name === "law");
    const entries = Object.entries(value).sort(([a], [b]) => isFirst(b) - isFirst(a));
    return `{ ${entries.map(([name, value]) => `${key(name)} = ${inline(value)}`).join(", ")} }`;
  }
  return JSON.stringify(value);
}

/**
 * Whether a value is too long to be shown, so that its text does not stand for it.
 * @param {any} value
 * @returns {boolean}
 */
export function isShortened(value) {
  if (typeof value === "string") return /^\d+ values$/.test(value);
  return value !== null && typeof value === "object" && Object.values(value).some(isShortened);
}

/** Returns the bits per second of a rate as the engine writes it; null: unlimited. @param {string} text */
export function bitsOf(text) {
  const found = /^([\d.]+)([kMGT]?)bit$/.exec(text);
  if (!found) return null;
  return Number(found[1]) * { "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 }[/** @type {""} */ (found[2])];
}

/** Returns the milliseconds of a duration as the engine writes it. @param {string} text */
export function millisOf(text) {
  const found = /^([\d.]+)(ps|ns|us|ms|s)$/.exec(text);
  if (!found) return 0;
  return Number(found[1]) * { ps: 1e-9, ns: 1e-6, us: 1e-3, ms: 1, s: 1000 }[/** @type {"s"} */ (found[2])];
}

/** @param {number} bps */
export function bits(bps) {
  /** @type {[number, string][]} */
  const units = [[1e9, "Gbit"], [1e6, "Mbit"], [1e3, "kbit"]];
  for (const [size, unit] of units) {
    if (bps >= size) return `${(bps / size).toFixed(2)} ${unit}`;
  }
  return `${bps.toFixed(0)} bit`;
}

export class Network {
  constructor() {
    this.at = 0;
    /** Seconds between two samples. */
    this.periodS = Infinity;
    /** @type {Link[]} */
    this.links = [];
    /** @type {string[]} */
    this.fields = [];
    /** @type {{host: string, failure: string}[]} */
    this.failures = [];
    this.changes = -1;
    this.missed = 0;
    this.tolerance = "";
    /** Of the last second. @type {{load: number, headroom: number, warning: string | null}[]} */
    this.workers = [];
    /** The values of a link that is given none. @type {Record<string, any>} */
    this.defaults = {};
    /** Called after each event. @type {(kind: "state" | "sample") => void} */
    this.onUpdate = () => {};
    /** Called with the state of the connection. @type {(text: string, isGood: boolean) => void} */
    this.onStatus = () => {};
  }

  /** The headroom of the busiest worker, from 0 to 1. */
  workerHeadroom() {
    return Math.min(1, ...this.workers.map((worker) => worker.headroom));
  }

  /**
   * How much more a direction can carry: the unused fraction of its rate, at most that of the
   * busiest worker.
   * @param {Direction} direction
   */
  headroom(direction) {
    return Math.max(0, Math.min(1 - (direction.load ?? 0), this.workerHeadroom()));
  }

  /** Follows the engine for ever. */
  async follow() {
    for (;;) {
      try {
        const answer = await request("/events");
        if (answer.status === 401) {
          this.onStatus("This page needs the address with the token that the engine printed.", false);
          return;
        }
        if (!answer.ok || !answer.body) throw new Error();
        await this.read(answer.body.getReader());
      } catch {
        // The engine has ended, or the connection broke.
      }
      this.onStatus("no connection", false);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  /** Reads server-sent events. @param {ReadableStreamDefaultReader<Uint8Array>} reader */
  async read(reader) {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const [event, data] = text.slice(0, end).split("\n");
        text = text.slice(end + 2);
        this.take(event.slice("event: ".length), JSON.parse(data.slice("data: ".length)));
      }
    }
  }

  /** @param {string} kind @param {any} data */
  take(kind, data) {
    // Another run: its counters begin at 0.
    const isNewRun = kind === "state" && data.at_s < this.at;
    if (isNewRun) this.at = 0;
    const seconds = Math.max(1e-3, data.at_s - this.at);
    if (kind === "state") {
      this.periodS = data.period_ms / 1000;
      const before = new Map(this.links.map((link) => [link.name, link]));
      this.fields = data.fields;
      this.tolerance = data.tolerance;
      this.defaults = data.defaults ?? {};
      this.failures = data.failures;
      this.missed += data.missed;
      this.links = data.links.map((/** @type {any} */ { name, ends, interfaces, directions }) => {
        let old = before.get(name);
        if (old && `${old.ends}` !== `${ends}`) old = undefined;
        const make = (/** @type {any} */ parameters, /** @type {number} */ i) => {
          if (!old) return new Direction(parameters, ends[i], ends[1 - i]);
          old.directions[i].parameters = parameters;
          if (isNewRun) old.directions[i].forget();
          return old.directions[i];
        };
        const chosen = old?.chosen ?? false;
        return { name, ends, interfaces: interfaces ?? ["", ""], directions: directions.map(make), chosen };
      });
    }
    for (const [index, parameters] of data.parameters ?? []) this.direction(index).parameters = parameters;
    this.workers = data.workers ?? [];
    const isNew = new Set();
    for (const [index, ...values] of data.rows) {
      isNew.add(index);
      const counters = Object.fromEntries(this.fields.map((field, i) => [field, values[i]]));
      this.direction(index).update(counters, seconds);
    }
    const gapFrom = seconds > GAP_PERIODS * this.periodS ? this.at : null;
    const toleranceMs = millisOf(this.tolerance);
    const keepsAll = this.links.length <= KEEP_ALL_MAX;
    this.links.forEach((link, number) => link.directions.forEach((direction, i) => {
      // A direction that is not in the sample has moved nothing.
      if (!isNew.has(2 * number + i)) direction.update(direction.now, seconds);
      direction.keep(data.at_s, keepsAll || link.chosen, gapFrom, toleranceMs);
    }));
    this.at = data.at_s;
    const changed = this.changes !== data.changes;
    this.changes = data.changes;
    this.onStatus("live", true);
    this.onUpdate(kind === "state" || changed ? "state" : "sample");
  }

  /** @param {number} index */
  direction(index) {
    return this.links[index >> 1].directions[index & 1];
  }

  chosen() {
    return this.links.filter((link) => link.chosen);
  }
}

/** Returns how much a link does: its class for colours, and its larger load. @param {Link} link */
export function activity({ directions }) {
  const load = Math.max(...directions.map((direction) => direction.load ?? 0));
  let kind = "low";
  if (directions.some((direction) => direction.parameters.state !== "up")) kind = "down";
  else if (directions.some((direction) => direction.dropsPerS > 0)) kind = "lossy";
  else if (load >= 0.9) kind = "high";
  else if (load >= 0.5) kind = "middle";
  else if (directions.every((direction) => direction.outBps === 0)) kind = "idle";
  return { kind, load };
}
