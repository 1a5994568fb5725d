// @ts-check
// The page of a switch: its flows, tables, ports and groups, read again and again.

import { bits, request } from "./state.js";
import { switchTables } from "./tables.js";

const PERIOD_MS = 1000;
const search = /** @type {HTMLInputElement} */ (document.getElementById("search"));
const place = /** @type {HTMLElement} */ (document.getElementById("switch"));
/** The report before, and when it was read. @type {{report: any, at: number} | null} */
let before = null;

/** @param {string} text @param {boolean} isGood */
function say(text, isGood) {
  const status = /** @type {HTMLElement} */ (document.getElementById("status"));
  status.textContent = text;
  status.className = isGood ? "good" : "bad";
}

/** @param {any} report */
function show(report) {
  const query = search.value.trim().toLowerCase();
  const isFound = (/** @type {any} */ flow) => `${flow.match} ${flow.actions}`.toLowerCase().includes(query);
  const scrolled = [...place.querySelectorAll(".scroll")].map((one) => one.scrollTop);
  place.replaceChildren(...switchTables({ ...report, flows: report.flows.filter(isFound) }));
  place.querySelectorAll(".scroll").forEach((one, i) => { one.scrollTop = scrolled[i] ?? 0; });
}

async function read() {
  try {
    const answer = await request("/switch");
    if (answer.status === 401) {
      return say("This page needs the address with the token that the switch printed.", false);
    }
    const report = await answer.json();
    const at = performance.now() / 1000;
    const sum = (/** @type {any} */ of, /** @type {string} */ key) =>
      of.ports.reduce((/** @type {number} */ all, /** @type {any} */ port) => all + port[key], 0);
    const rate = (/** @type {string} */ key) =>
      (before ? Math.max(0, (sum(report, key) - sum(before.report, key)) / (at - before.at)) : 0);
    const totals = [
      `${report.ports.length} ports`, `${report.flows.length + report.omitted} flows`,
      `${bits(8 * rate("tx_bytes"))}/s`, `${rate("tx_packets").toFixed(0)} packets/s`,
      `${sum(report, "dropped")} dropped at ports`,
    ];
    /** @type {HTMLElement} */ (document.getElementById("totals")).textContent = totals.join(" · ");
    before = { report, at };
    show(report);
    say("live", true);
  } catch {
    say("no connection", false);
  }
  setTimeout(read, PERIOD_MS);
}

search.addEventListener("input", () => { if (before) show(before.report); });
addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== search) {
    event.preventDefault();
    search.focus();
  }
});
read();
