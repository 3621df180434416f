// Progress by cohort, runs that diverged or failed, machines.

import { element, patchList, setAttribute, setText, show } from "./elements.js";
import { count, left, numberOf, percent } from "./numbers.js";

const COHORTS_AT_ONCE = 8;
const MOST_TROUBLES = 200;

/** A line with a name, a bar and a remark. */
const LINE = {
  make: () => element(
    "li", {}, element("span", { class: "who" }), element("progress", { max: 100 }), element("span", { class: "remark" }),
  ),
  update: (item, { name, share, remark }) => {
    const [who, bar, text] = item.children;
    setText(who, name);
    setAttribute(bar, "value", share);
    setAttribute(bar, "aria-label", name);
    setText(text, remark);
  },
};

export class Cohorts {
  constructor() {
    this.list = element("ul", { class: "bars" });
    this.others = element("ul", { class: "bars" });
    this.more = element("details", {}, element("summary"), this.others);
    this.more.addEventListener("toggle", () => this.update(this.items));
    this.nodes = [this.list, this.more];
    this.items = [];
  }

  update(cohorts) {
    this.items = cohorts;
    // Many cohorts: those at work first, then those that wait, then those that are done.
    const rank = ({ epochs_done: done, epochs }) => (done >= epochs ? 2 : done > 0 ? 0 : 1);
    const sorted = cohorts.length > COHORTS_AT_ONCE ? cohorts.toSorted((a, b) => rank(a) - rank(b)) : cohorts;
    const rest = sorted.slice(COHORTS_AT_ONCE);
    this.fill(this.list, sorted.slice(0, COHORTS_AT_ONCE));
    show(this.more, rest.length);
    const done = rest.filter((cohort) => rank(cohort) === 2).length;
    setText(this.more.firstElementChild, `${numberOf(rest.length, "more cohort")}${done ? `, ${count(done)} done` : ""}`);
    this.fill(this.others, this.more.open ? rest : []);
  }

  fill(list, cohorts) {
    patchList(list, cohorts.map((cohort) => ({ ...cohort, share: percent(cohort.epochs_done, cohort.epochs), remark: remark(cohort) })), {
      key: (cohort) => cohort.name, ...LINE,
    });
  }
}

function remark(cohort) {
  const parts = [`${count(cohort.done)} of ${numberOf(cohort.runs, "run")}`];
  if (cohort.diverged) parts.push(`${count(cohort.diverged)} diverged`);
  if (cohort.failed) parts.push(`${count(cohort.failed)} failed`);
  return [...parts, left(cohort.seconds_left)].filter(Boolean).join(", ");
}

export class Troubles {
  constructor() {
    this.list = element("ul", { class: "troubles", tabindex: 0, "aria-labelledby": "troubles" });
    this.rest = element("p", { class: "note" });
    this.nodes = [this.list, this.rest];
  }

  update(troubles, total = troubles.length) {
    patchList(this.list, troubles.slice(0, MOST_TROUBLES), {
      key: (item) => item.run,
      make: () => element("li", {}, element("p", {}, element("strong"), element("span", { class: "muted" })), element("p")),
      update: (line, item) => {
        const [head, reason] = line.children, when = Number.isFinite(item.epoch) ? ` at epoch ${count(item.epoch)}` : "";
        setText(head.children[0], item.run);
        setText(head.children[1], `${item.status}${when}`);
        setText(reason, item.reason || "no reason recorded");
      },
    });
    const more = total - Math.min(troubles.length, MOST_TROUBLES);
    setText(this.rest, more > 0 ? `${count(more)} more: the report and \`tiebreak status\` list them.` : "");
  }
}

export class Machines {
  constructor() {
    this.list = element("ul", { class: "bars side" });
    this.nodes = [this.list];
  }

  update(machines) {
    const lines = machines.map((machine) => {
      const used = `${count(machine.cores_used)} of ${numberOf(machine.cores, "core")}`;
      const gpus = machine.gpus ? numberOf(machine.gpus, "GPU") : "";
      const words = machine.alive === false ? ["gone: its jobs go elsewhere"] : [used, gpus, numberOf(machine.jobs ?? 0, "job")];
      return { name: machine.name, share: percent(machine.cores_used, machine.cores), remark: words.filter(Boolean).join(", ") };
    });
    patchList(this.list, lines, { key: (item) => item.name, ...LINE });
  }
}
