// The interval of one comparison, narrowing as seeds arrive, with zero and the margin.

import { element, setText, svg } from "./elements.js";
import { count, numberOf, signed, signedInterval } from "./numbers.js";
import { Chart, line, range } from "./plot.js";

const WIDEST = 4; // times the present interval: the first ones, over two or three seeds, would flatten all others
const SHOWN = 400; // points of a path

const known = (point) => [point.low, point.high, point.difference].every((each) => Number.isFinite(each));

export class IntervalChart extends Chart {
  constructor() {
    super({ height: 250 });
    this.path = [];
    this.xName = "seeds";
    this.headings = ["Seeds", "Difference", "95 % interval"];
    this.readout = element("p", { class: "readout", "aria-hidden": "true" });
    this.plot.after(this.readout);
  }

  update(comparison) {
    const { label, metric, margin, unit, a, b, goal, kind } = comparison;
    // who is better above 0 and below; an interaction has no better side
    this.sides = kind === "pair" || kind === "setting" ? (goal === "min" ? [b, a] : [a, b]) : null;
    const all = comparison.path?.length ? comparison.path : [comparison];
    const step = Math.ceil(all.length / SHOWN);
    this.path = all.filter((point, i) => known(point) && (i % step === 0 || i === all.length - 1));
    this.margin = margin ?? 0;
    this.name(`Difference in ${unit || metric}: ${label}`, `Interval of the difference by number of seeds: ${label}`);
    setText(
      this.caption,
      this.path.length
        ? `Line and shaded area: the difference and its 95 % interval, from the first seeds to all so far. Grey band: the margin of ±${margin}; a difference inside it does not matter.`
        : "No interval yet: it takes two seeds that have finished on both sides.",
    );
    this.plot.hidden = this.readout.hidden = this.numbers.hidden = !this.path.length;
    this.draw();
  }

  positions() { return this.path.map((point) => point.n); }

  limits() {
    const last = this.path.at(-1), most = WIDEST * (last.high - last.low);
    const shown = this.path.filter((point) => point.high - point.low <= most || point === last);
    return range([0, this.margin, -this.margin, ...shown.flatMap((point) => [point.low, point.high])], 0.08);
  }

  paint({ x, y, left, right, top, bottom }, marks, over) {
    const path = this.path, last = path.at(-1), at = x(last.n);
    const below = path.map((point) => [x(point.n), y(point.low)]);
    const above = path.map((point) => [x(point.n), y(point.high)]);
    marks.append(
      svg("rect", { class: "margin", x: left, width: right - left, y: y(this.margin), height: y(-this.margin) - y(this.margin) }),
      svg("line", { class: "zero", x1: left, x2: right, y1: y(0), y2: y(0) }),
      svg("path", { class: "narrowing", d: `${line(above)}${line(below.reverse()).replace("M", "L")}Z` }),
      svg("path", { class: "middle", d: line(path.map((point) => [x(point.n), y(point.difference)])) }),
    );
    over.append(
      svg("line", { class: "present", x1: at, x2: at, y1: y(last.low), y2: y(last.high) }),
      svg("path", { class: "diamond", d: `M${at} ${y(last.difference) - 7}l7 7-7 7-7-7z` }),
    );
    const room = Math.floor((right - left) / 7) - 10, cut = (name) => (name.length > room ? `${name.slice(0, room)}…` : name);
    if (this.sides) {
      over.append(
        svg("text", { class: "halo", x: left + 6, y: top + 12, text: `↑ ${cut(this.sides[0])} better` }),
        svg("text", { class: "halo", x: left + 6, y: bottom - 6, text: `↓ ${cut(this.sides[1])} better` }),
      );
    }
    over.append(
      svg("text", { class: "halo strong", x: at - 12, y: y(last.difference) - 9, "text-anchor": "end", text: signed(last.difference) }),
    );
  }

  tell(n, newest) {
    const point = this.path.find((each) => each.n === n);
    const text = `${numberOf(n, "seed")}: ${signed(point.difference)}, 95 % interval ${signedInterval(point.low, point.high)}`;
    setText(this.readout, newest ? `${text} (newest)` : text);
    return text;
  }

  rows() {
    return this.path.map((point) => [count(point.n), signed(point.difference), signedInterval(point.low, point.high)]);
  }
}
