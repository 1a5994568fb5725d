// @ts-check
// Charts of the chosen links, by uPlot.

/* global uPlot */

/** Links that have charts at a time. */
const CHARTED_MAX = 3;
const COLOURS = ["#2f6fde", "#d9822b", "#2a9d5c", "#b5489a", "#8a6fd1", "#c0392b"];

/** @typedef {import("./state.js").Direction} Direction */
/** @typedef {keyof import("./state.js").Sample} Column */
/**
 * A curve. One that is intended does not count to enlarge the scale.
 * @typedef {{column: Column, name: string, dash: number[], isIntended?: boolean}} Series
 */
/** @typedef {{title: string, unit: string, series: Series[], showsLosses?: boolean}} Chart */

/** @typedef {{direction: Direction, column: Column, isIntended?: boolean}} Source */

const SOLID = /** @type {number[]} */ ([]);
const DASHED = [4, 3];
const DOTTED = [1, 3];
/** What is intended is in the chart if it is at most this many times what is measured. */
const INTENDED_MAX = 20;

/**
 * The charts. Below the one that shows losses stand the drops by reason.
 * @type {Chart[]}
 */
const CHARTS = [
  {
    title: "rate",
    unit: "Mbit/s",
    series: [
      { column: "outMbit", name: "out", dash: SOLID },
      { column: "inMbit", name: "in", dash: DASHED },
      { column: "intendedMbit", name: "rate of the link", dash: DOTTED, isIntended: true },
    ],
  },
  { title: "queue", unit: "frames", series: [{ column: "queuedFrames", name: "", dash: SOLID }] },
  { title: "queueing delay", unit: "ms", series: [{ column: "queueingDelayMs", name: "", dash: SOLID }] },
  {
    title: "one-way delay",
    unit: "ms",
    series: [
      { column: "delayMs", name: "with queue", dash: SOLID },
      { column: "intendedDelayMs", name: "delay of the link", dash: DOTTED },
    ],
  },
  {
    title: "drops and marks",
    unit: "frames/s",
    series: [
      { column: "dropsPerS", name: "dropped", dash: SOLID },
      { column: "marksPerS", name: "marked", dash: DASHED },
    ],
    showsLosses: true,
  },
  {
    title: "lateness p99 since the sample before",
    unit: "ms",
    series: [
      { column: "latenessMs", name: "", dash: SOLID },
      { column: "toleranceMs", name: "tolerance", dash: DOTTED },
    ],
  },
];

export class Charts {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    /** @type {{chart: any, above: HTMLElement, sources: Source[]}[]} */
    this.charts = [];
    /** The drops by reason. @type {HTMLElement | null} */
    this.losses = null;
    new ResizeObserver(() => this.charts.forEach(({ chart }) => chart.setSize(this.size()))).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show(this.links ?? []));
  }

  size() {
    return { width: Math.max(220, this.place.clientWidth - 4), height: 130 };
  }

  /** Shows charts of these links. @param {import("./state.js").Link[]} links */
  show(links) {
    this.links = links;
    this.charts.forEach(({ chart }) => chart.destroy());
    this.place.replaceChildren();
    this.charts = [];
    this.losses = null;
    const shown = links.slice(0, CHARTED_MAX);
    if (shown.length === 0) return;
    for (const chart of CHARTS) this.add(chart, shown.flatMap((link) => link.directions));
    if (links.length > CHARTED_MAX) {
      const note = document.createElement("p");
      note.textContent = `The charts show the first ${CHARTED_MAX} of ${links.length} chosen links.`;
      this.place.append(note);
    }
    this.update();
  }

  /** Adds a chart of these directions. @param {Chart} chart @param {Direction[]} directions */
  add({ title, unit, series, showsLosses }, directions) {
    const sources = directions.flatMap((direction, i) => series.map(({ column, name, dash, isIntended }) => ({
      direction, column, dash, isIntended, stroke: COLOURS[i % COLOURS.length],
      label: `${direction.from} → ${direction.to}${name ? ` ${name}` : ""}`,
    })));
    const heading = document.createElement("h3");
    heading.textContent = `${title} (${unit})`;
    const above = document.createElement("span");
    heading.append(above);
    this.place.append(heading);
    // @ts-ignore uPlot is a classic script.
    const chart = new uPlot({ ...this.size(), ...options(sources) }, [[]], this.place);
    this.charts.push({ chart, above, sources });
    if (showsLosses) {
      this.losses = document.createElement("p");
      this.losses.id = "losses";
      this.place.append(this.losses);
    }
  }

  /** Draws what is new. */
  update() {
    const directions = (this.links ?? []).slice(0, CHARTED_MAX).flatMap((link) => link.directions);
    const lossy = directions.filter((direction) => direction.losses() !== "");
    const texts = lossy.map((direction) => `${direction.from} → ${direction.to}: ${direction.losses()}`);
    const losses = texts.join("; ") || "no frame dropped or marked";
    if (this.losses) this.losses.textContent = `Since the start: ${losses}`;
    for (const { chart, above, sources } of this.charts) {
      // Directions of one network have the same times from the first that all keep.
      const length = Math.min(...sources.map(({ direction }) => direction.history.length));
      const values = (/** @type {Direction} */ { history }, /** @type {Column} */ column) =>
        history.slice(history.length - length).map((sample) => sample[column]);
      const times = values(sources[0].direction, "atS");
      chart.setData([times, ...sources.map(({ direction, column }) => values(direction, column))]);
      const last = (/** @type {Source} */ { direction, column }) => direction.history.at(-1)?.[column] ?? 0;
      const { max } = chart.scales.y;
      const hidden = sources.filter((source) => source.isIntended && last(source) > max).map(last);
      const rates = [...new Set(hidden)].join(", ");
      above.textContent = rates ? `; rate of the link, above: ${rates}` : "";
    }
  }
}

/**
 * Returns the options of uPlot for these series.
 * @param {{label: string, stroke: string, dash: number[], isIntended?: boolean}[]} sources
 */
function options(sources) {
  const style = getComputedStyle(document.documentElement);
  const colour = style.getPropertyValue("--text").trim();
  const grid = { stroke: style.getPropertyValue("--line").trim(), width: 1 };
  const axis = { stroke: colour, grid, ticks: grid, font: "11px system-ui" };
  const larger = (/** @type {number} */ most, /** @type {number | null} */ value) =>
    Math.max(most, value ?? 0);
  const range = (/** @type {any} */ chart) => {
    const largest = (/** @type {boolean} */ isIntended) => Math.max(0, ...sources.map((source, i) => (
      Boolean(source.isIntended) === isIntended
        ? (chart.data[i + 1] ?? []).reduce(larger, 0)
        : 0)));
    const [measured, intended] = [largest(false), largest(true)];
    const isNear = measured === 0 || intended <= INTENDED_MAX * measured;
    return [0, Math.max(measured, isNear ? intended : 0, 1e-3) * 1.1];
  };
  const seconds = (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((s) => `${s} s`);
  /** @param {number} count @returns {(chart: any, value: number | null) => string} */
  const digits = (count) => (_, value) => (value == null ? "" : value.toFixed(count));
  return {
    scales: { x: { time: false }, y: { range } },
    cursor: { points: { size: 5 } },
    axes: [{ ...axis, size: 24, values: seconds }, { ...axis, size: 54 }],
    series: [{ label: "s", value: digits(1) }, ...sources.map(({ label, stroke, dash }) => ({
      label, stroke, dash, width: 1.5, points: { show: false }, value: digits(2),
    }))],
  };
}
