// What every chart shares: the arms' colours and markers, axes, and a cursor for pointer, finger and keyboard.

import { element, patchRows, setAttribute, setText, show, svg, table } from "./elements.js";
import { tick } from "./numbers.js";

// The report's colours and markers (report/figures/drawing.py): they differ for colour-blind readers too.
const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#767676"];
const SWATCHES = [
  "M6 1a5 5 0 1 0 .01 0z",
  "M1.5 1.5h9v9h-9z",
  "M6 1l5.4 9.6H.6z",
  "M6 .4L11.6 6 6 11.6.4 6z",
  "M6 11L.6 1.4h10.8z",
  "M4.2 1h3.6v3.2H11v3.6H7.8V11H4.2V7.8H1V4.2h3.2z",
  "M3.4 1L6 3.6 8.6 1 11 3.4 8.4 6 11 8.6 8.6 11 6 8.4 3.4 11 1 8.6 3.6 6 1 3.4z",
];
export const colour = (place) => PALETTE[place % PALETTE.length];
export const swatch = (place) => SWATCHES[(place + Math.floor(place / PALETTE.length)) % SWATCHES.length];

/** The arm's marker, for a legend. */
export function mark(place) {
  const path = svg("path", { d: swatch(place), fill: colour(place) });
  return svg("svg", { class: "mark", viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, path);
}

/** Round numbers between two ends, at most `most` of them, and their distance. */
export function ticks(low, high, most, whole = false) {
  const rough = (high - low) / Math.max(1, most) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough * 0.999);
  if (whole) step = Math.max(1, Math.round(step));
  const places = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) places.push(i * step);
  return { places, step };
}

/** All the values with a share of free room on both sides. */
export function range(values, share) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const room = share * (high - low) || Math.abs(low) * share || share;
  return [low - room, high + room];
}

export const line = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

const MARGIN = { left: 52, top: 10, bottom: 38 };
let charts = 0;
const TABLE_ROWS = 500; // more numbers than that are in the report

/**
 * A figure that is drawn again at every update and every change of its width. A kind of chart gives:
 * `positions()` the x values in order, `limits()` the range of y, `paint(area)` its marks, `tell(x)` the cursor's text,
 * `names` of both axes, `headings` and `rows()` of its table.
 */
export class Chart {
  constructor({ height }) {
    this.height = height;
    this.id = ++charts;
    this.cursor = null; // an index into positions; null: the newest
    this.picture = svg("svg", { class: "chart", "aria-hidden": "true", focusable: "false" });
    this.plot = element("div", { class: "plot", tabindex: 0, role: "slider", "aria-orientation": "horizontal" }, this.picture);
    this.title = element("p", { class: "title" });
    this.caption = element("figcaption");
    this.numbers = element("details", {}, element("summary", { text: "The numbers" }));
    this.node = element("figure", {}, this.title, this.plot, this.caption, this.numbers);
    this.plot.addEventListener("keydown", (event) => this.onKey(event));
    this.plot.addEventListener("pointermove", (event) => this.onPointer(event));
    this.plot.addEventListener("pointerdown", (event) => this.onPointer(event));
    this.plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") this.moveTo(null); });
    this.numbers.addEventListener("toggle", () => this.fillTable());
    this.width = 0; // as it was observed: to ask for it would lay out the page again at every update
    new ResizeObserver(([entry]) => {
      this.width = entry.contentRect.width;
      this.draw();
    }).observe(this.plot);
  }

  /** Draw what there is now. */
  draw() {
    const width = this.width, places = this.positions();
    if (!width || !places.length) return;
    const right = this.labelRoom(width);
    const [bottom, top] = this.limits(), first = places[0], last = Math.max(places.at(-1), first + 1);
    const inner = { left: MARGIN.left, right: width - right, top: MARGIN.top, bottom: this.height - MARGIN.bottom };
    this.area = {
      ...inner, bottomValue: bottom, topValue: top,
      x: (value) => inner.left + ((value - first) / (last - first)) * (inner.right - inner.left),
      y: (value) => inner.bottom - ((value - bottom) / (top - bottom)) * (inner.bottom - inner.top),
    };
    setAttribute(this.picture, "viewBox", `0 0 ${width} ${this.height}`);
    setAttribute(this.picture, "height", this.height);
    const clip = `clip-${this.id}`;
    const box = { x: inner.left, y: inner.top, width: inner.right - inner.left, height: inner.bottom - inner.top };
    const marks = svg("g", { "clip-path": `url(#${clip})` });
    const over = svg("g");
    this.paint(this.area, marks, over);
    this.pointer = svg("g");
    this.picture.replaceChildren(
      svg("clipPath", { id: clip }, svg("rect", box)), ...this.axes(first, last), marks, over, this.pointer,
    );
    setAttribute(this.plot, "aria-valuemin", places[0]);
    setAttribute(this.plot, "aria-valuemax", places.at(-1));
    this.moveTo(this.cursor !== null && this.cursor < places.length ? this.cursor : null);
    this.fillTable();
  }

  /** Free room to the right of the marks. */
  labelRoom() { return 14; }

  axes(first, last) {
    const { left, right, top, bottom, x, y, bottomValue, topValue } = this.area, parts = [];
    const up = ticks(bottomValue, topValue, Math.max(3, Math.floor((bottom - top) / 32)));
    for (const value of up.places) {
      parts.push(svg("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }));
      parts.push(svg("text", { class: "tick", x: left - 8, y: y(value) + 4, "text-anchor": "end", text: tick(value, up.step) }));
    }
    const across = ticks(first, last, Math.max(2, Math.floor((right - left) / 60)), true);
    for (const value of across.places) {
      parts.push(svg("text", { class: "tick", x: x(value), y: bottom + 17, "text-anchor": "middle", text: tick(value, across.step) }));
    }
    parts.push(svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    parts.push(svg("text", { class: "tick", x: (left + right) / 2, y: bottom + 33, "text-anchor": "middle", text: this.xName }));
    return parts;
  }

  /** Put the cursor at an index of the positions; null is the newest. */
  moveTo(index) {
    const places = this.positions();
    if (!places.length || !this.area) return;
    this.cursor = index;
    const value = places[index ?? places.length - 1];
    this.pointer.replaceChildren();
    if (index !== null) {
      const x = this.area.x(value);
      this.pointer.append(svg("line", { class: "cursor", x1: x, x2: x, y1: this.area.top, y2: this.area.bottom }));
      this.point(value, this.pointer);
    }
    setAttribute(this.plot, "aria-valuenow", value);
    setAttribute(this.plot, "aria-valuetext", this.tell(value, index === null));
  }

  /** Marks at the cursor. */
  point() {}

  onKey(event) {
    const most = this.positions().length - 1, now = this.cursor ?? most, page = Math.max(1, Math.round(most / 10));
    const to = {
      ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1,
      PageDown: now - page, PageUp: now + page, Home: 0, End: most, Escape: null,
    }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.moveTo(to === null ? null : Math.max(0, Math.min(most, to)));
  }

  onPointer(event) {
    const places = this.positions();
    if (!this.area || !places.length) return;
    const at = event.clientX - this.plot.getBoundingClientRect().left;
    let nearest = 0;
    places.forEach((value, i) => {
      if (Math.abs(this.area.x(value) - at) < Math.abs(this.area.x(places[nearest]) - at)) nearest = i;
    });
    this.moveTo(nearest);
  }

  /** The numbers behind the picture, while they are open. */
  fillTable() {
    if (!this.numbers.open) {
      this.numbers.querySelector(".box")?.remove(); // what nobody sees takes no memory
      return;
    }
    let box = this.numbers.querySelector(".box");
    if (!box) {
      const made = table(`The numbers: ${this.title.textContent}`, this.headings);
      box = made.box;
      this.numbers.append(box);
    }
    const rows = this.rows().slice(-TABLE_ROWS);
    patchRows(box.querySelector("tbody"), rows, (row, place) => String(place), (row) => row);
  }

  name(title, label) {
    setText(this.title, title);
    show(this.title, title);
    setAttribute(this.plot, "aria-label", label);
  }
}
