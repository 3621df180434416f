// The section of learning curves: one legend for all charts, one chart for each metric and split.

import { element, patchList, setAttribute, setText, show } from "./elements.js";
import { CurveChart } from "./curve_chart.js";
import { mark } from "./plot.js";

const AT_ONCE = 3; // charts; the others are drawn when they are asked for
const SPLITS = { val: "validation", train: "training", test: "test" };

export class Curves {
  constructor() {
    this.chosen = new Set(); // arms that the reader picked; none: all
    this.places = new Map(); // arm -> its place in the study
    this.charts = new Map();
    this.legend = element("ul", { class: "legend", "aria-label": "Arms: press one to bring it out" });
    this.panels = element("div", { class: "panels" });
    this.others = element("div", { class: "panels" });
    this.more = element("details", {}, element("summary"), this.others);
    this.more.addEventListener("toggle", () => this.draw());
    this.empty = element("p", { class: "missing", text: "No epoch is recorded yet of a run that trains or is done." });
    this.note = element("p", {
      class: "note",
      text: "Line: mean over the seeds so far. Band: 95 % interval of that mean. Point at a chart, or focus it and use the arrow keys, to read the values of an epoch.",
    });
    this.nodes = [this.empty, this.legend, this.panels, this.more, this.note];
    this.snapshot = null;
  }

  update(snapshot) {
    for (const arm of snapshot.arms ?? []) this.placeOf(arm);
    this.snapshot = snapshot;
    this.draw();
  }

  placeOf(arm) {
    if (!this.places.has(arm)) this.places.set(arm, this.places.size);
    return this.places.get(arm);
  }

  draw() {
    const curves = (this.snapshot?.curves ?? []).filter((curve) => curve.epochs.length);
    const arms = [...new Set(curves.map((curve) => curve.arm))];
    for (const arm of this.chosen) if (!arms.includes(arm)) this.chosen.delete(arm);
    const panels = Object.entries(Object.groupBy(this.dressed(curves), (curve) => `${SPLITS[curve.split] ?? curve.split} ${curve.metric}`));
    show(this.empty, !curves.length);
    show(this.note, curves.length);
    this.drawLegend(arms);
    this.drawPanels(this.panels, panels.slice(0, AT_ONCE));
    const rest = panels.slice(AT_ONCE);
    show(this.more, rest.length);
    setText(this.more.firstElementChild, `${rest.length} more: ${rest.map(([title]) => title).join(", ")}`);
    this.drawPanels(this.others, this.more.open ? rest : []);
  }

  /** The curves with a label, the place of their arm and the turn of their setting among those of the arm. */
  dressed(curves) {
    const settings = new Map();
    for (const { arm, setting } of curves) settings.set(arm, (settings.get(arm) ?? new Set()).add(setting));
    return curves.map((curve) => {
      const own = [...settings.get(curve.arm)];
      const label = own.length > 1 && curve.setting ? `${curve.arm}, ${curve.setting}` : curve.arm;
      return { ...curve, label, place: this.placeOf(curve.arm), turn: own.indexOf(curve.setting) };
    });
  }

  drawLegend(arms) {
    show(this.legend, arms.length > 1);
    patchList(this.legend, arms, {
      key: (arm) => arm,
      make: (arm) => {
        const button = element("button", { type: "button" }, mark(this.placeOf(arm)), element("span", { text: arm }));
        button.addEventListener("click", () => {
          if (!this.chosen.delete(arm)) this.chosen.add(arm);
          this.draw();
        });
        return element("li", {}, button);
      },
      update: (item, arm) => setAttribute(item.firstElementChild, "aria-pressed", this.chosen.has(arm)),
    });
  }

  drawPanels(parent, panels) {
    patchList(parent, panels, {
      key: ([title]) => title,
      make: ([title]) => {
        const chart = new CurveChart();
        this.charts.set(chart.node, chart);
        return chart.node;
      },
      update: (node, [title, curves]) => this.charts.get(node).update(title, curves, this.chosen),
    });
    for (const node of this.charts.keys()) {
      if (!this.panels.contains(node) && !this.others.contains(node)) this.charts.delete(node);
    }
  }
}
