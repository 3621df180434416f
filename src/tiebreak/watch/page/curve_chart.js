// Learning curves of one metric on one split: a line with a band for every arm and setting.

import { element, patchList, setText, show, svg } from "./elements.js";
import { count, interval, score } from "./numbers.js";
import { Chart, colour, line, mark, range, swatch } from "./plot.js";

const MOST_BANDS = 4; // more of them hide each other
const MOST_LABELS = 6; // names beside the lines, and readouts below them
const LABEL_WIDTH = 340; // px: a narrower chart has no room for names
const SHOWN = 300; // points of a line
const DASHES = [null, "7 3", "2 3", "8 3 2 3"]; // settings of one arm
const LETTER = 6.8; // px

/** The interval of a mean; a single seed has none. */
const around = ({ low, high }, i) => (low[i] < high[i] ? ` (${interval(low[i], high[i])})` : "");

export class CurveChart extends Chart {
  constructor() {
    super({ height: 240 });
    this.curves = [];
    this.chosen = new Set();
    this.places = [];
    this.xName = "epoch";
    this.headings = ["Epoch", "Arm", "Mean", "95 % interval", "Seeds"];
    this.readout = element("div", { class: "readout", "aria-hidden": "true" });
    this.when = element("p", { class: "when" });
    this.list = element("ul", { class: "values" });
    this.readout.append(this.when, this.list);
    this.plot.after(this.readout);
    this.caption.remove();
  }

  /** `curves` have an arm's `place` (its colour) and the `turn` of its setting; `chosen` arms stand out. */
  update(title, curves, chosen) {
    this.curves = curves.map((curve) => ({ ...curve, at: new Map(curve.epochs.map((epoch, i) => [epoch, i])) }));
    this.chosen = chosen;
    this.places = [...new Set(curves.flatMap((curve) => curve.epochs))].sort((a, b) => a - b);
    this.name(title, `Learning curve: ${title}`);
    this.draw();
  }

  positions() { return this.places; }

  get shown() {
    const chosen = this.curves.filter((curve) => this.chosen.has(curve.arm));
    return chosen.length ? chosen : this.curves;
  }

  limits() {
    const shown = this.shown, finite = (values) => values.filter((value) => Number.isFinite(value));
    const means = finite(shown.flatMap((curve) => curve.mean));
    if (!means.length) return [0, 1];
    const inside = range(means, 0.75);
    const all = range(finite([...means, ...shown.flatMap((curve) => [...curve.low, ...curve.high])]), 0.05);
    return [Math.max(inside[0], all[0]), Math.min(inside[1], all[1])];
  }

  labelRoom(width) {
    this.labelled = width >= LABEL_WIDTH && this.shown.length <= MOST_LABELS;
    const longest = Math.max(...this.shown.map((curve) => curve.label.length));
    return this.labelled ? 20 + Math.min(width / 4, longest * LETTER) : 14;
  }

  paint({ x, y }, marks, over) {
    const shown = this.shown, ends = [];
    for (const curve of this.curves.filter((each) => !shown.includes(each))) {
      marks.append(svg("path", { class: "behind", d: line(this.points(curve, "mean", x, y)) }));
    }
    for (const curve of shown.length <= MOST_BANDS ? shown : []) {
      const high = this.points(curve, "high", x, y), low = this.points(curve, "low", x, y).reverse();
      if (high.length > 1) {
        marks.append(svg("path", { class: "band", fill: colour(curve.place), d: `${line(high)}${line(low).replace("M", "L")}Z` }));
      }
    }
    for (const curve of shown) {
      const points = this.points(curve, "mean", x, y);
      if (!points.length) continue;
      marks.append(svg("path", {
        class: "curve", stroke: colour(curve.place), d: line(points), "stroke-dasharray": DASHES[curve.turn % DASHES.length],
      }));
      over.append(this.marker(curve, points.at(-1)));
      ends.push({ curve, x: points.at(-1)[0], y: points.at(-1)[1] });
    }
    if (this.labelled) this.labels(ends, over);
  }

  points(curve, key, x, y) {
    const step = Math.ceil(curve.epochs.length / SHOWN), found = [];
    curve.epochs.forEach((epoch, i) => {
      const value = curve[key][i];
      if (Number.isFinite(value) && (i % step === 0 || i === curve.epochs.length - 1)) found.push([x(epoch), y(value)]);
    });
    return found;
  }

  marker(curve, [x, y]) {
    const move = `translate(${(x - 5).toFixed(1)} ${(y - 5).toFixed(1)}) scale(.83)`;
    return svg("path", { class: "marker", d: swatch(curve.place), fill: colour(curve.place), transform: move });
  }

  /** Names at the ends of the lines, moved apart where they would lie on each other. */
  labels(ends, over) {
    const room = this.width - this.area.right - 14;
    ends.sort((a, b) => a.y - b.y);
    let free = this.area.top;
    for (const end of ends) {
      end.at = Math.max(end.y, free);
      free = end.at + 15;
    }
    const middle = ends.reduce((sum, end) => sum + end.at - end.y, 0) / (ends.length || 1);
    const excess = Math.max(Math.min(middle, (ends[0]?.at ?? 0) - this.area.top), free - 15 - this.area.bottom);
    for (const end of ends) {
      const most = Math.floor(room / LETTER), name = end.curve.label;
      const text = name.length > most ? `${name.slice(0, Math.max(1, most - 1))}…` : name;
      const y = end.at - Math.max(0, excess) + 4;
      over.append(svg("text", { class: "halo", x: end.x + 9, y, text }));
    }
  }

  point(epoch, pointer) {
    for (const curve of this.shown.slice(0, 60)) {
      const value = curve.mean[curve.at.get(epoch)];
      if (Number.isFinite(value)) {
        pointer.append(svg("circle", { class: "dot", cx: this.area.x(epoch), cy: this.area.y(value), r: 4, fill: colour(curve.place) }));
      }
    }
  }

  tell(epoch, newest) {
    const listed = this.shown.slice(0, MOST_LABELS);
    const at = (curve) => {
      const last = curve.epochs.length - 1;
      return newest ? last : curve.at.get(epoch); // curves end at different epochs
    };
    setText(this.when, newest ? "Newest epoch" : `Epoch ${count(epoch)}`);
    patchList(this.list, listed, {
      key: (curve) => curve.label,
      make: (curve) => element("li", {}, mark(curve.place), element("span", { class: "who" }), element("span", { class: "what" })),
      update: (item, curve) => {
        const i = at(curve);
        setText(item.children[1], curve.label);
        setText(item.children[2], i === undefined ? "–" : `${score(curve.mean[i])}${around(curve, i)}`);
      },
    });
    const more = this.shown.length - listed.length;
    if (more) setText(this.when, `${this.when.textContent}, first ${MOST_LABELS} of ${this.shown.length}`);
    show(this.readout, true);
    const words = listed.map((curve) => `${curve.label} ${at(curve) === undefined ? "–" : score(curve.mean[at(curve)])}`);
    return `${newest ? "newest epoch" : `epoch ${count(epoch)}`}: ${words.join(", ")}`;
  }

  rows() {
    return this.shown.flatMap((curve) => curve.epochs.map((epoch, i) => [
      count(epoch), curve.label, score(curve.mean[i]), interval(curve.low[i], curve.high[i]), count(curve.n?.[i] ?? curve.n),
    ]));
  }
}
