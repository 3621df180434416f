// The comparisons: the chosen one as a chart, all of them as a table with a bar for each interval.

import { element, patchList, setAttribute, setText, svg, table } from "./elements.js";
import { IntervalChart } from "./interval_chart.js";
import { count, signed, signedInterval } from "./numbers.js";
import { range } from "./plot.js";

const MOST_ROWS = 100; // all pairs of 40 arms are 780: the report lists them
const BAR = { width: 180, height: 18 };

export class Comparisons {
  constructor() {
    this.chosen = null; // the label of the comparison that is drawn; null: the first
    this.chart = new IntervalChart();
    this.sentence = element("p", { class: "sentence" });
    this.list = table("All comparisons", ["Comparison", "Interval", "Difference", "95 % interval", "Seeds", "Verdict"]);
    this.rest = element("p", { class: "note" });
    this.nodes = [this.chart.node, this.sentence];
    this.tables = [this.list.box, this.rest];
    this.items = [];
  }

  update(comparisons, total = comparisons.length) {
    [this.items, this.total] = [comparisons, total];
    const shown = comparisons.find((item) => key(item) === this.chosen) ?? comparisons[0];
    if (shown === undefined) return;
    this.chart.update(shown);
    setText(this.sentence, shown === comparisons[0] ? "" : shown.sentence ?? ""); // that of the first stands at the top
    const rows = comparisons.slice(0, MOST_ROWS);
    const limits = this.limits(rows);
    patchList(this.list.body, rows, {
      key,
      make: (item) => this.row(item),
      update: (row, item) => this.updateRow(row, item, limits, item === shown),
    });
    const more = total > rows.length ? ` ${count(total - rows.length)} more are in the report.` : "";
    setText(this.rest, `Press a comparison to draw it above. Bar: its interval; grey: its margin; line: 0.${more}`);
  }

  /** One axis for all the bars of a metric. */
  limits(rows) {
    const found = new Map();
    for (const item of rows) {
      const values = [item.low, item.high, item.difference].filter((each) => Number.isFinite(each));
      found.set(item.metric, [...(found.get(item.metric) ?? [0, item.margin, -item.margin]), ...values]);
    }
    return new Map([...found].map(([metric, values]) => [metric, range(values, 0.05)]));
  }

  row(item) {
    const button = element("button", { type: "button", class: "pick" });
    button.addEventListener("click", () => {
      this.chosen = key(item);
      this.update(this.items, this.total);
    });
    const bar = svg("svg", { class: "bar", width: BAR.width, height: BAR.height, "aria-hidden": "true" });
    const texts = ["n", "n", "n", "outcome"].map((name) => element("td", { class: name }));
    return element("tr", {}, element("th", { scope: "row" }, button), element("td", {}, bar), ...texts);
  }

  updateRow(row, item, limits, shown) {
    const [name, bar, difference, interval, seeds, outcome] = row.children;
    setText(name.firstElementChild, item.label);
    setAttribute(name.firstElementChild, "aria-pressed", shown);
    setText(difference, signed(item.difference));
    setText(interval, signedInterval(item.low, item.high));
    setText(seeds, count(item.n));
    setText(outcome, item.words ?? "");
    drawBar(bar.firstElementChild, item, limits.get(item.metric));
  }
}

const key = (item) => `${item.label} ${item.metric}`;

function drawBar(picture, item, [low, high]) {
  const x = (value) => ((value - low) / (high - low)) * BAR.width, middle = BAR.height / 2;
  const parts = [
    svg("rect", { class: "margin", x: x(-item.margin), width: x(item.margin) - x(-item.margin), y: 0, height: BAR.height }),
    svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: BAR.height }),
  ];
  if (Number.isFinite(item.low) && Number.isFinite(item.high)) {
    parts.push(svg("line", { class: "present", x1: x(item.low), x2: x(item.high), y1: middle, y2: middle }));
  }
  if (Number.isFinite(item.difference)) {
    parts.push(svg("path", { class: "diamond", d: `M${x(item.difference)} ${middle - 5}l5 5-5 5-5-5z` }));
  }
  picture.replaceChildren(...parts);
}
