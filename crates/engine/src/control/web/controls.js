// @ts-check
// Changes: fields and sliders for the chosen links, and the list of what was changed.

import { bitsOf, millisOf, post, request } from "./state.js";

/** The least time between two changes while a slider moves, milliseconds. */
const SLIDE_MS = 150;
const KEYS = ["delay", "rate", "loss", "queue", "jitter"];

/** @template {HTMLElement} T @param {string} id @returns {T} */
const get = (id) => /** @type {T} */ (/** @type {unknown} */ (document.getElementById(id)));

export class Controls {
  /** @param {import("./state.js").Network} network */
  constructor(network) {
    this.network = network;
    this.form = /** @type {HTMLFormElement} */ (get("controls"));
    this.direction = /** @type {HTMLSelectElement} */ (get("direction"));
    this.answer = get("answer");
    /** Fields that the user has edited and not set. @type {Set<string>} */
    this.edited = new Set();
    this.sending = Promise.resolve();
    for (const key of KEYS) this.field(key).addEventListener("input", () => this.edited.add(key));
    this.slider("delay", (value) => `${value}ms`);
    this.slider("rate", (value) => `${Math.round(10 ** Number(value) / 1000)}kbit`);
    this.slider("loss", (value) => `${value}%`);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const keys = KEYS.filter((key) => this.edited.has(key) && this.field(key).value.trim() !== "");
      const set = Object.fromEntries(keys.map((key) => [key, this.field(key).value.trim()]));
      if (keys.length === 0) this.say("Edit a field, then set it.", false);
      else this.send(set);
    });
    for (const state of ["up", "down"]) get(state).addEventListener("click", () => this.send({ state }));
    get("export").addEventListener("click", () => this.export());
    this.direction.addEventListener("change", () => this.show());
    this.showGroups();
  }

  /** @param {string} key */
  field(key) {
    return /** @type {HTMLInputElement} */ (get(key));
  }

  /** @param {string} key @param {(value: string) => string} text */
  slider(key, text) {
    const slider = this.field(`${key}-slider`);
    let last = 0;
    let waiting = 0;
    const change = () => {
      last = performance.now();
      this.send({ [key]: text(slider.value) });
    };
    slider.addEventListener("input", () => {
      this.field(key).value = text(slider.value);
      clearTimeout(waiting);
      // Changes while it moves, and the last one always.
      waiting = setTimeout(change, Math.max(0, SLIDE_MS - (performance.now() - last)));
    });
  }

  /** Shows the values of the chosen links. */
  show() {
    const chosen = this.network.chosen();
    this.form.hidden = chosen.length === 0;
    if (chosen.length === 0) return;
    const ends = chosen.length === 1 ? chosen[0].ends : [];
    const { options } = this.direction;
    const isOther = (/** @type {string} */ end, /** @type {number} */ i) => options[i + 1].value !== end;
    if (options.length !== 1 + ends.length || ends.some(isOther)) {
      const directions = ends.map((end, i) => new Option(`${end} → ${ends[1 - i]}`, end));
      this.direction.replaceChildren(new Option("both", ""), ...directions);
    }
    const from = this.direction.value;
    const all = chosen.flatMap((link) => link.directions);
    const pipes = all.filter((direction) => from === "" || direction.from === from);
    for (const key of KEYS) {
      const field = this.field(key);
      if (this.edited.has(key) || document.activeElement === field) continue;
      const texts = new Set(pipes.map(({ parameters }) => {
        const value = parameters.values[key] ?? parameters[key] ?? "none";
        return typeof value === "string" ? value : JSON.stringify(value);
      }));
      const [only] = texts;
      field.value = texts.size === 1 ? only : "";
      field.placeholder = texts.size === 1 ? "" : "different values";
    }
    const { delay, rate, loss } = pipes[0].parameters;
    const place = (/** @type {string} */ key, /** @type {number} */ value) => {
      const slider = this.field(`${key}-slider`);
      if (document.activeElement !== slider) slider.value = String(value);
    };
    place("delay", millisOf(delay));
    place("rate", Math.log10(bitsOf(rate) ?? 1e11));
    place("loss", parseFloat(loss) || 0);
  }

  /** Sends values for all chosen links at one instant. @param {Record<string, string>} set */
  send(set) {
    const links = this.network.chosen();
    const from = this.direction.value || undefined;
    const changes = links.map((link) => ({ link: link.name, from, set }));
    // One after another, so that they apply in the order of the gestures.
    this.sending = this.sending.then(async () => {
      try {
        const { at_s: at } = await post("/set", { changes });
        Object.keys(set).forEach((key) => this.edited.delete(key));
        const what = links.length === 1 ? links[0].name : `${links.length} links`;
        this.say(`Set for ${what} at ${at.toFixed(3)} s.`, true);
      } catch (error) {
        this.say(String(/** @type {Error} */ (error).message), false);
      }
    });
  }

  /** @param {string} text @param {boolean} isGood */
  say(text, isGood) {
    this.answer.textContent = text;
    this.answer.className = isGood ? "" : "bad";
  }

  async showGroups() {
    const answer = await request("/groups");
    if (!answer.ok) return;
    get("groups").replaceChildren(...(await answer.json()).map((/** @type {{name: string}} */ { name }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `Start traces of ${name}`;
      button.addEventListener("click", async () => {
        try {
          const { at_s: at } = await post(`/groups/${encodeURIComponent(name)}/start`);
          this.say(`Traces of ${name} started at ${at.toFixed(3)} s.`, true);
        } catch (error) {
          this.say(String(/** @type {Error} */ (error).message), false);
        }
      });
      return button;
    }));
  }

  /** Lists the changes, the newest first. */
  async list() {
    const answer = await request("/changes");
    if (!answer.ok) return;
    const { changes } = await answer.json();
    const items = changes.slice(-200).reverse().map((/** @type {any} */ change) => {
      const item = document.createElement("li");
      const { at_s: at, link, group, from } = change;
      const where = `${link ?? group ?? ""}${from ? ` from ${from}` : ""}`;
      item.textContent = `${at.toFixed(3)} s  ${where}  ${whatChanged(change)}`;
      return item;
    });
    get("changes").replaceChildren(...items);
  }

  /** Saves the changes as events of a spec. */
  async export() {
    const answer = await request("/changes.toml");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([await answer.text()], { type: "text/plain" }));
    link.download = "events.toml";
    link.click();
    URL.revokeObjectURL(link.href);
  }
}

/** Returns a change in words. @param {any} change */
function whatChanged({ set, started, applied }) {
  if (started) return `traces of ${started} start`;
  if (applied) return `${applied} nodes, links and settings applied`;
  const text = (/** @type {unknown} */ value) => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.entries(set ?? {}).map(([key, value]) => `${key} = ${text(value)}`).join(", ");
}
