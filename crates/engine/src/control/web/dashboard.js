// @ts-check
// The page: connects the state of the network with the map, the list, the charts and the controls.

import { Charts } from "./charts.js";
import { Controls } from "./controls.js";
import { Capture, commandLine, quoted, save } from "./download.js";
import { Inspector } from "./inspect.js";
import { BUNDLED_FROM, NetworkMap } from "./map.js";
import { activity, bits, Network, request } from "./state.js";

/** @typedef {import("./state.js").Link} Link */
/** @typedef {import("./state.js").Direction} Direction */

/** Rows of the list of links: those that do most come first. */
const ROWS_MAX = 100;
/** Maps with at most this many links begin with the names of interfaces. */
const INTERFACES_UP_TO = 24;

/** @template {Element} T @param {string} id @returns {T} */
const get = (id) => /** @type {T} */ (/** @type {unknown} */ (document.getElementById(id)));

const network = new Network();
const map = new NetworkMap(get("map"), network);
const charts = new Charts(get("charts"));
const controls = new Controls(network);
const search = /** @type {HTMLInputElement} */ (get("search"));
const bundle = /** @type {HTMLInputElement} */ (get("bundle"));
const interfaces = /** @type {HTMLInputElement} */ (get("interfaces"));
const inspector = new Inspector(get("node"), network);
const capture = new Capture();
/** The links on the map. @type {string | null} */
let drawnLinks = null;
let listed = -1;

/** @param {Link[]} links @param {boolean} adds */
function choose(links, adds) {
  const all = links.every((link) => link.chosen);
  if (!adds) network.links.forEach((link) => { link.chosen = false; });
  links.forEach((link) => { link.chosen = adds ? !all : true; });
  showChosen();
}

function showChosen() {
  const chosen = network.chosen();
  const names = chosen.slice(0, 3).map((link) => link.name).join(", ");
  const some = chosen.length > 3 ? `${chosen.length} links: ${names}, …` : names;
  get("chosen-title").textContent = chosen.length === 0 ? "No link is chosen" : some;
  get("chosen-help").toggleAttribute("hidden", chosen.length > 0);
  controls.edited.clear();
  controls.show();
  charts.show(chosen);
  map.update();
  list();
  showLink(chosen);
}

/** Shows between which interfaces the chosen links are, and how to capture them. @param {Link[]} chosen */
function showLink(chosen) {
  const ends = chosen.slice(0, 3).map((link) =>
    `${link.name}: ${link.ends.map((end, i) => `${end} ${link.interfaces[i]}`.trim()).join(" – ")}`);
  const place = get("link");
  place.toggleAttribute("hidden", chosen.length === 0);
  if (chosen.length === 0) return;
  const text = document.createElement("p");
  text.textContent = `${ends.join("; ")}${chosen.length > 3 ? "; …" : ""}`;
  const file = chosen.length === 1 ? `${chosen[0].name}.pcapng` : "links.pcapng";
  const lab = inspector.lab?.name ?? inspector.topology.name;
  const words = ["fastpath", "capture", ...(lab ? ["--lab", lab] : []), "-w", file];
  const isAll = chosen.length === network.links.length && chosen.length > 1;
  const links = isAll ? [] : chosen.map(({ name }) => name);
  place.replaceChildren(text, commandLine("a capture", [...words, ...links].map(quoted).join(" ")));
}

capture.onChange = (text, isRunning) => {
  get("capture").textContent = isRunning ? "Stop and save the capture" : "Capture";
  controls.say(text, true);
};
get("capture").addEventListener("click", () => capture.toggle(network.chosen().map(({ name }) => name)));

/** Returns the links that the search shows. */
function shown() {
  const query = map.query;
  if (query === "") return network.links;
  const isFound = (/** @type {string} */ text) => text.toLowerCase().includes(query);
  return network.links.filter(({ name, ends }) => [name, ...ends].some(isFound));
}

function list() {
  const body = /** @type {HTMLTableSectionElement} */ (document.querySelector("#links tbody"));
  const rank = (/** @type {Link} */ link) => {
    const [there, back] = link.directions;
    const first = (link.chosen ? 1e18 : 0) + (there.dropsPerS + back.dropsPerS > 0 ? 1e15 : 0);
    return first + activity(link).load * 1e12 + there.outBps + back.outBps;
  };
  const found = shown();
  // A short list keeps its order, so that rows do not move under the pointer.
  const links = found.length <= ROWS_MAX
    ? found
    : found.map((link, i) => ({ link, i, rank: rank(link) }))
      .sort((a, b) => b.rank - a.rank || a.i - b.i).slice(0, ROWS_MAX).map(({ link }) => link);
  const more = found.length - links.length;
  const first = more > 0 ? `${links.length} with most traffic of ` : "";
  get("count").textContent = `${first}${found.length}`;
  while (body.rows.length > links.length) body.deleteRow(-1);
  links.forEach((link, i) => {
    const row = body.rows[i] ?? newRow(body);
    const { kind, load } = activity(link);
    const most = (/** @type {(direction: Direction) => number} */ value) =>
      Math.max(...link.directions.map(value));
    const has = link.directions.some((direction) => direction.load !== null);
    const percent = has ? `${(100 * load).toFixed(0)} %` : "–";
    const delayUs = most((direction) => direction.now.queueing_delay_us ?? 0);
    const texts = [
      link.name,
      kind === "down" ? "down" : percent,
      bits(most((direction) => direction.outBps)),
      String(most((direction) => direction.now.queued_frames ?? 0)),
      `${(delayUs / 1000).toFixed(2)} ms`,
      most((direction) => direction.dropsPerS).toFixed(0),
      `${(100 * Math.min(...link.directions.map((direction) => network.headroom(direction)))).toFixed(0)} %`,
    ];
    texts.forEach((text, column) => {
      const cell = row.cells[column + 1];
      if (cell.textContent !== text) cell.textContent = text;
    });
    const box = /** @type {HTMLInputElement} */ (row.cells[0].firstChild);
    if (box.checked !== link.chosen) box.checked = link.chosen;
    box.setAttribute("aria-label", link.name);
    row.dataset.link = link.name;
    row.className = `${kind}${link.chosen ? " chosen" : ""}`;
  });
}

/** @param {HTMLTableSectionElement} body */
function newRow(body) {
  const row = body.insertRow();
  for (let i = 0; i < 8; i += 1) row.insertCell();
  const box = document.createElement("input");
  box.type = "checkbox";
  row.cells[0].append(box);
  row.addEventListener("click", (event) => {
    const link = network.links.find(({ name }) => name === row.dataset.link);
    if (link) choose([link], event.target === box || event.shiftKey || event.ctrlKey || event.metaKey);
  });
  return row;
}

network.onStatus = (text, isGood) => {
  const status = get("status");
  status.textContent = text;
  status.className = isGood ? "good" : "bad";
  if (!isGood && text.length > 20) problem(text);
};

/** @param {string} text */
function problem(text) {
  const place = get("problem");
  place.textContent = text;
  place.toggleAttribute("hidden", text === "");
}

network.onUpdate = (kind) => {
  const pipes = network.links.flatMap((link) => link.directions);
  get("clock").textContent = `${network.at.toFixed(1)} s`;
  const sum = (/** @type {(direction: Direction) => number} */ value) =>
    pipes.reduce((sum, pipe) => sum + value(pipe), 0);
  const lateness = Math.max(0, ...pipes.map((pipe) => pipe.now.lateness_p99_us ?? 0));
  const totals = [
    `${network.links.length} links`,
    `${bits(sum((pipe) => pipe.outBps))}/s`,
    `${sum((pipe) => pipe.dropsPerS).toFixed(0)} drops/s`,
    `${sum((pipe) => pipe.now.late ?? 0)} frames more than ${network.tolerance} late`,
    `lateness now ${(lateness / 1000).toFixed(2)} ms`,
  ];
  network.workers.forEach(({ headroom }, number) => {
    totals.push(`worker ${number}: ${(100 * headroom).toFixed(0)} % headroom`);
  });
  if (network.missed) totals.push(`${network.missed} samples missed`);
  get("totals").textContent = totals.join(" · ");
  const failures = network.failures.map(({ host, failure }) => `${host}: ${failure}`);
  problem([...failures, ...network.workers.flatMap(({ warning }) => warning ?? [])].join("; "));
  const names = network.links.map((link) => `${link.name} ${link.ends}`).join("\n");
  if (kind === "state" && names !== drawnLinks) {
    drawnLinks = names;
    redraw();
  }
  if (network.changes !== listed) {
    listed = network.changes;
    controls.list().then((hasNewNodes) => { if (hasNewNodes) redraw(); });
  }
  controls.show();
  map.update();
  list();
  charts.update();
};

async function redraw() {
  const [picture, description] = await Promise.all([request("/picture"), request("/topology")]);
  if (!picture.ok) return;
  map.picture = await picture.json();
  inspector.topology = await description.json();
  const { nodes } = map.picture;
  inspector.noteOf = (name) => nodes.find((place) => place.name === name)?.note ?? "";
  inspector.show([]);
  controls.showGroups();
  await inspector.readLab();
  const name = inspector.lab?.name ?? inspector.topology.name;
  document.title = name ? `${name} – fastpath` : "fastpath";
  bundle.checked = network.links.length >= BUNDLED_FROM;
  map.isBundled = bundle.checked;
  interfaces.checked = network.links.length <= INTERFACES_UP_TO;
  map.showsInterfaces = interfaces.checked;
  map.draw();
  map.fit();
}

search.addEventListener("input", () => {
  map.query = search.value.trim().toLowerCase();
  map.draw();
  list();
});
bundle.addEventListener("change", () => {
  map.isBundled = bundle.checked;
  map.draw();
  map.fit();
});
interfaces.addEventListener("change", () => {
  map.showsInterfaces = interfaces.checked;
  map.draw();
});
get("svg").addEventListener("click", () => {
  const name = inspector.lab?.name ?? inspector.topology.name ?? "network";
  save(`${name}.svg`, [map.file(`${name} at ${network.at.toFixed(1)} s`)], "image/svg+xml");
});
get("nearer").addEventListener("click", () => map.zoom(1 / 1.4));
get("farther").addEventListener("click", () => map.zoom(1.4));
get("fit").addEventListener("click", () => map.fit());
get("choose-shown").addEventListener("click", () => choose(shown(), false));
get("choose-none").addEventListener("click", () => choose([], false));
map.onChoose = choose;
map.onNode = (names) => inspector.show(names);
addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
  if (event.key === "Escape") {
    if (event.target === search && search.value !== "") return;
    inspector.show([]);
    choose([], false);
  } else if (event.key === "/" && !isTyping) {
    event.preventDefault();
    search.focus();
  }
});
addEventListener("resize", () => map.show());
network.follow();
