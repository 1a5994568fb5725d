// @ts-check
// What leaves the page: files to download, and commands to paste into a shell.

import { request } from "./state.js";

/** Saves a file. @param {string} name @param {BlobPart[]} parts @param {string} type */
export function save(name, parts, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Returns a word of sh(1). @param {string} text */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * Returns a command with a button that copies it.
 * @param {string} label
 * @param {string} command
 */
export function commandLine(label, command) {
  const line = document.createElement("p");
  line.className = "command";
  const code = document.createElement("code");
  code.textContent = command;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy the command for ${label}`);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command);
      button.textContent = "Copied";
    } catch {
      // Without the right to the clipboard the command is selected, to be copied by hand.
      getSelection()?.selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  const name = document.createElement("span");
  name.textContent = `${label}: `;
  line.append(name, code, button);
  return line;
}

/** A capture of links, which is saved when it is stopped. */
export class Capture {
  constructor() {
    /** @type {AbortController | null} */
    this.stop = null;
    /** Called with what it does. @type {(text: string, isRunning: boolean) => void} */
    this.onChange = () => {};
  }

  /** Starts the capture, or stops it and saves it. @param {string[]} links */
  async toggle(links) {
    if (this.stop) {
      this.stop.abort();
      return;
    }
    this.stop = new AbortController();
    const query = links.map((link) => `link=${encodeURIComponent(link)}`).join("&");
    /** @type {BlobPart[]} */
    const parts = [];
    let bytes = 0;
    let problem = "";
    try {
      const answer = await request(`/capture?${query}`, { signal: this.stop.signal });
      if (!answer.ok || !answer.body) throw new Error((await answer.json()).error);
      const reader = answer.body.getReader();
      this.onChange("Captures …", true);
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        parts.push(value);
        bytes += value.length;
        this.onChange(`Captures: ${bytes} bytes`, true);
      }
    } catch (error) {
      if (!this.stop.signal.aborted) problem = String(/** @type {Error} */ (error).message);
    }
    this.stop = null;
    if (bytes > 0) save(`${links.length === 1 ? links[0] : "links"}.pcapng`, parts, "application/x-pcapng");
    this.onChange(problem || `${bytes} bytes saved.`, false);
  }
}
