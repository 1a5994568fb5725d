// @ts-check
// Charts of a report that are read: values under the pointer, curves and sections chosen, zoom.

const tip = /** @type {HTMLElement} */ (document.getElementById("tip"));

/** @param {MouseEvent} event @param {string} text */
function show(event, text) {
  tip.textContent = text;
  tip.style.display = "block";
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4);
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${event.clientY + 14}px`;
}

const hide = () => { tip.style.display = "none"; };

// Browsers wait a second before they show the title of a point.
for (const point of document.querySelectorAll(".p")) {
  const title = point.querySelector("title");
  if (!title) continue;
  const text = title.textContent ?? "";
  title.remove();
  point.addEventListener("mousemove", (event) => {
    event.stopPropagation();
    show(/** @type {MouseEvent} */ (event), text);
  });
  point.addEventListener("mouseleave", hide);
}

/** An axis: its values and pixels at both ends, and whether it is logarithmic. */
class Axis {
  /** @param {string} text */
  constructor(text) {
    [this.from, this.to, this.start, this.end, this.log] = text.split(" ").map(Number);
  }
  /** @param {number} pixels */
  value(pixels) {
    const share = (pixels - this.start) / (this.end - this.start);
    if (this.log) return this.from * (this.to / this.from) ** share;
    return this.from + share * (this.to - this.from);
  }
  /** @param {number} value */
  at(value) {
    return this.start + ((value - this.from) / (this.to - this.from)) * (this.end - this.start);
  }
}

/** Four digits. @param {number} x */
const digits = (x) => (x === 0 ? "0" : Number(x.toPrecision(4)).toString());

/** The points of a curve. @param {Element} line @returns {number[][]} */
const pointsOf = (line) =>
  (line.getAttribute("points") ?? "").split(" ").map((point) => point.split(",").map(Number));

/** Two letters a value: its thousand-and-more parts of the axis; -- is none. @param {string} text */
function unpacked(text) {
  const values = [];
  for (let at = 0; at + 1 < text.length; at += 2) {
    const part = text.slice(at, at + 2);
    values.push(part === "--" ? NaN : parseInt(part, 36) / 1295);
  }
  return values;
}

for (const svg of /** @type {NodeListOf<SVGSVGElement>} */ (document.querySelectorAll("svg[data-x]"))) {
  const whole = new Axis(svg.dataset.x ?? "");
  const x = new Axis(svg.dataset.x ?? "");
  const y = new Axis(svg.dataset.y ?? "");
  const curves = [...svg.querySelectorAll(".c")];
  /** @param {MouseEvent} event */
  const place = (event) => {
    const box = svg.getBoundingClientRect();
    return ((event.clientX - box.left) * svg.viewBox.baseVal.width) / box.width;
  };
  svg.addEventListener("mousemove", (event) => {
    const at = place(event);
    if (at < x.start || at > x.end) return hide();
    /** @type {Map<string, number[]>} */
    const nearest = new Map();
    for (const curve of curves) {
      const name = curve.getAttribute("data-n") ?? "";
      if (curve.classList.contains("off")) continue;
      for (const point of pointsOf(curve)) {
        const known = nearest.get(name);
        if (!known || Math.abs(point[0] - at) < Math.abs(known[0] - at)) nearest.set(name, point);
      }
    }
    if (nearest.size === 0) return hide();
    const unit = svg.dataset.v ?? "";
    const lines = [...nearest].map(([name, point]) =>
      `${name || "value"}: ${digits(y.value(point[1]))} ${unit}`.trim());
    show(event, [`${digits(x.value(at))} ${svg.dataset.u ?? ""}`, ...lines].join("\n"));
  });
  svg.addEventListener("mouseleave", hide);

  // The legend chooses curves.
  for (const key of svg.querySelectorAll(".k")) {
    const turn = () => {
      const isOff = key.classList.toggle("off");
      key.setAttribute("aria-pressed", String(!isOff));
      for (const part of svg.querySelectorAll("[data-n]")) {
        const isSame = part.getAttribute("data-n") === key.getAttribute("data-n");
        if (isSame && part !== key) part.classList.toggle("off", isOff);
      }
    };
    key.addEventListener("click", turn);
    key.addEventListener("keydown", (event) => {
      const name = /** @type {KeyboardEvent} */ (event).key;
      if (name !== "Enter" && name !== " ") return;
      event.preventDefault();
      turn();
    });
  }

  // Pulling across a chart over time shows that part, with all samples; a double click the whole.
  const fine = curves.filter((curve) => curve.hasAttribute("data-f"));
  if (fine.length === 0) continue;
  const coarse = curves.map((curve) => curve.getAttribute("points") ?? "");
  const ticks = [...svg.querySelectorAll(".x")];
  const usual = ticks.map((tick) => tick.textContent);
  const zoom = (/** @type {number} */ from, /** @type {number} */ to) => {
    [x.from, x.to] = [from, to];
    const isWhole = from === whole.from && to === whole.to;
    curves.forEach((curve, i) => {
      const text = curve.getAttribute("data-f");
      if (isWhole) return curve.setAttribute("points", coarse[i]);
      if (text === null) return curve.setAttribute("points", "");
      const [start, step] = (curve.getAttribute("data-s") ?? "0 1").split(" ").map(Number);
      const points = [];
      unpacked(text).forEach((value, bin) => {
        const time = start + bin * step;
        if (Number.isNaN(value) || time < from || time > to) return;
        points.push(`${x.at(time).toFixed(1)},${(y.start + value * (y.end - y.start)).toFixed(1)}`);
      });
      curve.setAttribute("points", points.join(" "));
    });
    ticks.forEach((tick, i) => {
      const at = Number(tick.getAttribute("x"));
      tick.textContent = isWhole ? usual[i] : digits(x.value(at));
    });
  };
  /** @type {number | null} */
  let grip = null;
  svg.addEventListener("pointerdown", (event) => {
    if (!(/** @type {Element} */ (event.target)).closest(".k")) grip = place(event);
  });
  svg.addEventListener("pointerup", (event) => {
    const [a, b] = [grip ?? 0, place(event)].map((at) => Math.min(Math.max(at, x.start), x.end));
    if (grip !== null && Math.abs(a - b) > 8) zoom(x.value(Math.min(a, b)), x.value(Math.max(a, b)));
    grip = null;
  });
  svg.addEventListener("dblclick", () => zoom(whole.from, whole.to));
}

// Sections that have charts are chosen by name.
for (const box of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("nav input"))) {
  box.addEventListener("change", () => {
    const section = document.getElementById(box.value);
    if (section) section.hidden = !box.checked;
  });
}
