// @ts-check
// Charts of the chosen links, by uPlot.

/* global uPlot */

/** Links that have charts at a time. */
const CHARTED_MAX = 3;
const COLOURS = ["#2f6fde", "#d9822b", "#2a9d5c", "#b5489a", "#8a6fd1", "#c0392b"];

/** Title, unit, and for each series of a direction: column of its history and dash. */
const CHARTS = [
  { title: "rate", unit: "Mbit/s", series: [{ column: 2, name: "out", dash: [] }, { column: 1, name: "in", dash: [4, 3] }] },
  { title: "queue", unit: "frames", series: [{ column: 3, name: "", dash: [] }] },
  { title: "queueing delay", unit: "ms", series: [{ column: 4, name: "", dash: [] }] },
  { title: "drops and marks", unit: "frames/s", series: [{ column: 5, name: "dropped", dash: [] }, { column: 7, name: "marked", dash: [4, 3] }] },
  { title: "lateness p99", unit: "ms", series: [{ column: 6, name: "", dash: [] }] },
];

export class Charts {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    /** @type {{chart: any, sources: {direction: import("./state.js").Direction, column: number}[]}[]} */
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
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--text").trim();
    const grid = getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
    for (const { title, unit, series } of CHARTS) {
      const directions = shown.flatMap((link) => link.directions);
      const sources = directions.flatMap((direction, i) => series.map(({ column, name, dash }) => ({
        direction, column, dash, stroke: COLOURS[i % COLOURS.length],
        label: `${direction.from} → ${direction.to}${name ? ` ${name}` : ""}`,
      })));
      const heading = document.createElement("h3");
      heading.textContent = `${title} (${unit})`;
      this.place.append(heading);
      const axis = { stroke: colour, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "11px system-ui" };
      // @ts-ignore uPlot is a classic script.
      const chart = new uPlot({
        ...this.size(),
        scales: { x: { time: false }, y: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, 1e-3) * 1.1] } },
        cursor: { points: { size: 5 } },
        axes: [{ ...axis, size: 24, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((s) => `${s} s`) }, { ...axis, size: 54 }],
        series: [{ label: "s", value: (/** @type {any} */ _, /** @type {number | null} */ at) => (at == null ? "" : at.toFixed(1)) }, ...sources.map(({ label, stroke, dash }) => ({
          label, stroke, dash, width: 1.5, points: { show: false },
          value: (/** @type {any} */ _, /** @type {number | null} */ value) => (value == null ? "" : value.toFixed(2)),
        }))],
      }, [[]], this.place);
      this.charts.push({ chart, sources });
      if (title.startsWith("drops")) {
        this.losses = document.createElement("p");
        this.losses.id = "losses";
        this.place.append(this.losses);
      }
    }
    if (links.length > CHARTED_MAX) {
      const note = document.createElement("p");
      note.textContent = `The charts show the first ${CHARTED_MAX} of ${links.length} chosen links.`;
      this.place.append(note);
    }
    this.update();
  }

  /** Draws what is new. */
  update() {
    const directions = (this.links ?? []).slice(0, CHARTED_MAX).flatMap((link) => link.directions);
    const lossy = directions.filter((direction) => direction.losses() !== "");
    const texts = lossy.map((direction) => `${direction.from} → ${direction.to}: ${direction.losses()}`);
    if (this.losses) this.losses.textContent = `Since the start: ${texts.join("; ") || "no frame dropped or marked"}`;
    for (const { chart, sources } of this.charts) {
      // Directions of one network have the same times from the first that all keep.
      const length = Math.min(...sources.map(({ direction }) => direction.history.length));
      const rows = (/** @type {import("./state.js").Direction} */ direction) => direction.history.slice(direction.history.length - length);
      const times = rows(sources[0].direction).map((row) => row[0]);
      chart.setData([times, ...sources.map(({ direction, column }) => rows(direction).map((row) => row[column]))]);
    }
  }
}
