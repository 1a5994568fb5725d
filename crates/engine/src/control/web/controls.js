// @ts-check
// Changes: fields and sliders for the chosen links, and the list of what was changed.

import { save } from "./download.js";
import { bitsOf, isShortened, millisOf, post, request, textOf } from "./state.js";

/** The least time between two changes while a slider moves, milliseconds. */
const SLIDE_MS = 150;
const KEYS = [
  "delay", "rate", "loss", "queue", "jitter", "reorder", "duplicate", "corrupt", "slots", "overhead",
];
/** The ranges of the slider of delays, milliseconds: the next one begins at the end of the one before. */
const DELAYS_MAX = [1000, 5000, 20_000, 60_000, 300_000];

/** @typedef {import("./state.js").Direction} Direction */
/** @typedef {import("./state.js").Link} Link */
/** @typedef {{name: string, start: string, links: string[]}} Group */

/** @template {HTMLElement} T @param {string} id @returns {T} */
const get = (id) => /** @type {T} */ (/** @type {unknown} */ (document.getElementById(id)));

export class Controls {
  /** @param {import("./state.js").Network} network */
  constructor(network) {
    this.network = network;
    this.form = /** @type {HTMLFormElement} */ (get("controls"));
    this.direction = /** @type {HTMLSelectElement} */ (get("direction"));
    this.preset = /** @type {HTMLSelectElement} */ (get("preset"));
    this.subscriber = /** @type {HTMLSelectElement} */ (get("subscriber"));
    this.answer = get("answer");
    /** Fields that the user has edited and not set. @type {Set<string>} */
    this.edited = new Set();
    /** @type {{name: string, title: string, up: object, down: object}[]} */
    this.presets = [];
    /** How often another description was applied; null: not known. @type {number | null} */
    this.applied = null;
    this.sending = Promise.resolve();
    for (const key of KEYS) this.field(key).addEventListener("input", () => this.edited.add(key));
    this.slider("delay", (value) => `${value}ms`);
    this.slider("rate", (value) => `${Math.round(10 ** Number(value) / 1000)}kbit`);
    this.slider("loss", (value) => `${value}%`);
    const delay = this.field("delay-slider");
    delay.addEventListener("change", () => {
      const next = DELAYS_MAX.find((max) => max > Number(delay.max));
      if (delay.value === delay.max && next) delay.max = String(next);
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const keys = KEYS.filter((key) => this.edited.has(key) && this.field(key).value.trim() !== "");
      const set = Object.fromEntries(keys.map((key) => [key, this.field(key).value.trim()]));
      if (keys.length === 0) this.say("Edit a field, then set it.", false);
      else this.send(set);
    });
    for (const state of ["up", "down"]) get(state).addEventListener("click", () => this.send({ state }));
    get("export").addEventListener("click", () => this.export());
    get("restore").addEventListener("click", () => this.restore(this.network.chosen()));
    get("restore-all").addEventListener("click", () => this.restore(null));
    get("use-preset").addEventListener("click", () => this.usePreset());
    this.direction.addEventListener("change", () => this.show());
    this.showGroups();
    this.listPresets();
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
      slider.setAttribute("aria-valuetext", text(slider.value));
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
    options(this.direction, [["both", ""], ...ends.map((end, i) => [`${end} → ${ends[1 - i]}`, end])]);
    const sides = ends.length > 0 ? ends : ["first node", "second node"];
    options(this.subscriber, sides.map((side, i) => [side, String(i)]));
    const from = this.direction.value;
    const all = chosen.flatMap((link) => link.directions);
    const pipes = all.filter((direction) => from === "" || direction.from === from);
    for (const key of KEYS) this.showField(key, pipes);
    const { delay, rate, loss } = pipes[0].parameters;
    const place = (/** @type {string} */ key, /** @type {number} */ value) => {
      const slider = this.field(`${key}-slider`);
      slider.disabled = this.field(key).readOnly;
      if (document.activeElement !== slider) slider.value = String(value);
    };
    const ms = millisOf(delay);
    const slider = this.field("delay-slider");
    if (ms > Number(slider.max)) slider.max = String(DELAYS_MAX.find((max) => max >= ms) ?? Math.ceil(ms));
    place("delay", ms);
    place("rate", Math.log10(bitsOf(rate) ?? 1e11));
    place("loss", parseFloat(loss) || 0);
  }

  /** Shows the value under a key, as it can be set. @param {string} key @param {Direction[]} pipes */
  showField(key, pipes) {
    const field = this.field(key);
    const values = pipes.map((pipe) => pipe.value(key, this.network.defaults));
    const trace = pipes.map((pipe) => pipe.tracedBy(key)).find((name) => name !== null) ?? null;
    const isLong = values.some(isShortened);
    field.readOnly = trace !== null || isLong;
    const long = isLong ? "It is too long to be edited here." : "";
    field.title = trace !== null ? `The trace ${trace} sets it.` : long;
    if (this.edited.has(key) || document.activeElement === field) return;
    const texts = new Set(values.map(textOf));
    const [only] = texts;
    const text = texts.size === 1 ? only : "";
    if (field.value !== text) field.value = text;
    field.placeholder = texts.size === 1 ? "" : "different values";
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

  /**
   * Sends a request, and says what it did at which time.
   * @param {string} path
   * @param {unknown} body
   * @param {string} what
   */
  async command(path, body, what) {
    try {
      const { at_s: at } = await post(path, body);
      this.say(`${what} at ${at.toFixed(3)} s.`, true);
    } catch (error) {
      this.say(String(/** @type {Error} */ (error).message), false);
    }
  }

  /** Gives links the values of the spec again; null: all. @param {Link[] | null} links */
  restore(links) {
    this.edited.clear();
    const some = links?.length === 1 ? `${links[0].name} has` : `${links?.length} links have`;
    const what = links === null ? "All links have" : some;
    const body = links === null ? {} : { links: links.map((link) => link.name) };
    return this.command("/restore", body, `${what} the values of the spec`);
  }

  /** Lists the presets. */
  async listPresets() {
    const answer = await request("/presets");
    if (!answer.ok) return;
    this.presets = await answer.json();
    options(this.preset, this.presets.map(({ name, title }) => [`${name}: ${title}`, name]));
  }

  /** Gives the chosen links the values of a preset. */
  usePreset() {
    const preset = this.presets.find(({ name }) => name === this.preset.value);
    if (!preset) return;
    const side = Number(this.subscriber.value);
    const links = this.network.chosen();
    const changes = links.flatMap(({ name: link, ends }) => [
      { link, from: ends[side], set: preset.up },
      { link, from: ends[1 - side], set: preset.down },
    ]);
    this.edited.clear();
    const what = links.length === 1 ? links[0].name : `${links.length} links`;
    this.command("/set", { changes }, `Preset ${preset.name} set for ${what}`);
  }

  /** Shows the groups, whose traces can be started and stopped. */
  async showGroups() {
    const answer = await request("/groups");
    if (!answer.ok) return;
    const groups = await answer.json();
    const rows = groups.map((/** @type {Group} */ { name, start, links }) => {
      const row = document.createElement("li");
      const text = document.createElement("span");
      text.textContent = `${name}: ${links.length} links, start ${start} `;
      const button = (/** @type {"start" | "stop"} */ action, /** @type {string} */ done) => {
        const made = document.createElement("button");
        made.type = "button";
        made.textContent = action === "start" ? "Start traces" : "Stop traces";
        made.setAttribute("aria-label", `${made.textContent} of ${name}`);
        made.addEventListener("click", () => {
          const path = `/groups/${encodeURIComponent(name)}/${action}`;
          this.command(path, undefined, `Traces of ${name} ${done}`);
        });
        return made;
      };
      row.append(text, button("start", "started"), button("stop", "stopped"));
      return row;
    });
    get("groups").replaceChildren(...rows);
    get("groups-panel").hidden = groups.length === 0;
  }

  /** Lists the changes, the newest first. Returns whether another description was applied since. */
  async list() {
    const answer = await request("/changes");
    if (!answer.ok) return false;
    const { changes } = await answer.json();
    const items = changes.slice(-200).reverse().map((/** @type {any} */ change) => {
      const item = document.createElement("li");
      const { at_s: at, link, group, from } = change;
      const where = `${link ?? group ?? ""}${from ? ` from ${from}` : ""}`;
      item.textContent = `${at.toFixed(3)} s  ${where}  ${whatChanged(change)}`;
      return item;
    });
    get("changes").replaceChildren(...items);
    const applied = changes.filter((/** @type {any} */ change) => change.applied).length;
    const isNew = this.applied !== null && applied > this.applied;
    this.applied = applied;
    return isNew;
  }

  /** Saves the changes as events of a spec. */
  async export() {
    const answer = await request("/changes.toml");
    save("events.toml", [await answer.text()], "text/plain");
  }
}

/**
 * Gives a list these choices, unless it has them.
 * @param {HTMLSelectElement} list
 * @param {string[][]} choices
 */
function options(list, choices) {
  const isSame = list.options.length === choices.length &&
    choices.every(([text, value], i) => list.options[i].value === value && list.options[i].text === text);
  if (!isSame) list.replaceChildren(...choices.map(([text, value]) => new Option(text, value)));
}

/** Returns a change in words. @param {any} change */
function whatChanged({ set, started, stopped, applied }) {
  if (started) return `traces of ${started} start`;
  if (stopped) return `traces of ${stopped} stop`;
  if (applied) return `${applied} nodes, links and settings applied`;
  return Object.entries(set ?? {}).map(([key, value]) => `${key} = ${textOf(value)}`).join(", ");
}
