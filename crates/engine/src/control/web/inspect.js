// @ts-check
// What is known about chosen nodes: their description and links, programs and log of a host, tables
// of an OpenFlow switch, and the commands that enter them.

import { commandLine, quoted } from "./download.js";
import { request, textOf } from "./state.js";
import { element, switchTables, table } from "./tables.js";

const NODES_MAX = 12;
/** How often counters and programs are read again, milliseconds. */
const PERIOD_MS = 2000;

export class Inspector {
  /** @param {HTMLElement} place @param {import("./state.js").Network} network */
  constructor(place, network) {
    this.place = place;
    this.network = network;
    /** The canonical description. @type {any} */
    this.topology = {};
    /** Addresses beside nodes of the map. @type {(name: string) => string} */
    this.noteOf = () => "";
    /** @type {string[]} */
    this.names = [];
    /** The lab, if it tells of its programs. @type {any} */
    this.lab = null;
    this.shown = 0;
    setInterval(() => { if (this.names.length > 0 && !document.hidden) this.update(); }, PERIOD_MS);
  }

  /** Reads which lab it is. */
  async readLab() {
    const answer = await request("/nodes");
    this.lab = answer.ok ? await answer.json() : null;
  }

  /** Shows nodes; none: nothing. @param {string[]} names */
  show(names) {
    this.names = names;
    this.place.toggleAttribute("hidden", names.length === 0);
    this.place.replaceChildren(...names.slice(0, NODES_MAX).map((name) => this.about(name)));
    if (names.length > NODES_MAX) this.place.append(element("p", `and ${names.length - NODES_MAX} more`));
    this.details = document.createElement("div");
    this.place.append(this.details);
    if (names.length > 0) this.update();
  }

  /** @param {string} name */
  kindOf(name) {
    return (this.topology.nodes ?? []).find((/** @type {any} */ node) => node.name === name)?.kind ?? "node";
  }

  /** Returns what the description has about a node. @param {string} name */
  about(name) {
    const nodes = /** @type {any[]} */ (this.topology.nodes ?? []);
    const { kind = "node", name: _, ...rest } = nodes.find((node) => node.name === name) ?? {};
    const words = Object.entries(rest).map(([key, value]) => `${key}: ${textOf(value)}`);
    const links = this.network.links.filter(({ ends }) => ends.includes(name)).map((link) => link.name);
    const linked = `links: ${links.slice(0, 20).join(", ") || "none"}${links.length > 20 ? ", …" : ""}`;
    return element("p", [`${kind} ${name}`, this.noteOf(name), ...words, linked].filter(Boolean).join(" · "));
  }

  /** Reads what changes: programs, and tables. */
  async update() {
    const { names, details } = this;
    if (names.length !== 1 || !details) return;
    const [name] = names;
    const isSwitch = this.kindOf(name) === "openflow";
    const shown = isSwitch ? await this.tables(name) : await this.programs(name);
    // The choice may have changed since.
    if (this.names === names && details === this.details && shown) {
      const open = details.querySelector("pre")?.scrollTop;
      details.replaceChildren(...shown);
      const log = details.querySelector("pre");
      if (log) log.scrollTop = open ?? log.scrollHeight;
    }
  }

  /** Returns the tables of a switch. @param {string} name */
  async tables(name) {
    const answer = await request(`/switches/${encodeURIComponent(name)}`);
    if (!answer.ok) return [element("p", (await answer.json()).error)];
    return switchTables(await answer.json());
  }

  /** Returns the programs of a host, its log, and how to enter it. @param {string} name */
  async programs(name) {
    await this.readLab();
    const node = this.lab?.nodes.find((/** @type {any} */ node) => node.name === name);
    if (!node?.namespace) return [];
    const lab = this.lab.name;
    const shown = [
      element("p", `${node.state}, namespace ${node.namespace}`),
      table(`Programs: ${node.programs.length}`, ["process", "command"],
        node.programs.map((/** @type {any} */ program) => [program.pid, program.command])),
      commandLine("a shell", `fastpath lab exec ${quoted(lab)} ${quoted(name)}`),
    ];
    if (!node.log) return shown;
    shown.push(commandLine("its log", `tail -f ${quoted(node.log)}`));
    const answer = await request(`/nodes/${encodeURIComponent(name)}/log`);
    if (answer.ok) {
      const log = element("pre", await answer.text());
      log.setAttribute("aria-label", `The end of the log of ${name}`);
      log.tabIndex = 0;
      shown.push(log);
    }
    return shown;
  }
}
