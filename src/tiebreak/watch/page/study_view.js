// One study: the question, the verdict so far, progress, curves, runs that failed, machines, the report.

import { element, patchList, section, setAttribute, setText, show } from "./elements.js";
import { Comparisons } from "./comparisons.js";
import { Curves } from "./curves.js";
import { count, left, numberOf, percent, rate, moment } from "./numbers.js";
import { Cohorts, Machines, Troubles } from "./sections.js";

export const STATES = {
  reading: "reading the folder", running: "running", ended: "ended", interrupted: "interrupted", empty: "nothing trained yet", unreadable: "cannot be read",
};

/** Why a verdict is not the last word yet. */
function caution(snapshot) {
  if (snapshot.final || !snapshot.verdict) return "";
  return snapshot.until_decided
    ? "Not final: the study adds seeds until it is decided, and its intervals allow for every look."
    : "Not final: looking early is free only under --until-decided. Wait for the last seed before you decide.";
}

/** The state of a study in one line, where there is nothing else to say. */
function problem(snapshot) {
  if (snapshot.problem) return snapshot.problem;
  if (snapshot.state === "empty") return "Nothing is trained here yet. The page follows as soon as a study runs in this folder.";
  if (snapshot.state === "interrupted") return "Nothing runs here at the moment: the study was interrupted. `tiebreak run` with the same folder goes on.";
  return "";
}

export class StudyView {
  constructor({ listed }) {
    this.back = listed ? element("a", { href: "/", text: "All studies" }) : null;
    this.name = element("strong");
    this.folder = element("span", { class: "folder" });
    this.state = element("span", { class: "badge" });
    this.question = element("h1");
    this.verdict = element("p", { class: "answer" });
    this.caution = element("p", { class: "notice" });
    this.problem = element("p", { class: "notice" });
    this.bar = element("progress", { max: 100, "aria-label": "Epochs trained" });
    this.facts = element("p", { class: "facts" });
    this.doing = element("p", { class: "note" });
    this.report = element("a", { class: "report", text: "Open the report" });
    this.frame = element("iframe", { title: "The report" });
    this.warnings = element("ul", { class: "notice" });
    this.live = element("div", { role: "status", "aria-live": "polite", "aria-label": "Verdict so far" }, this.verdict, this.caution);
    const header = element(
      "header", {},
      element("p", { class: "eyebrow" }, this.back, this.name, this.folder), this.question,
      element("p", { class: "state" }, this.state), this.live, this.problem, this.warnings,
      element("div", { class: "overall" }, this.bar, this.facts, this.doing), element("p", {}, this.report),
    );
    this.comparisons = new Comparisons();
    this.cohorts = new Cohorts();
    this.curves = new Curves();
    this.troubles = new Troubles();
    this.machines = new Machines();
    this.parts = {
      interval: section("interval", "The difference so far", ...this.comparisons.nodes),
      progress: section("progress", "Progress", ...this.cohorts.nodes),
      curves: section("curves", "Learning curves", ...this.curves.nodes),
      others: section("comparisons", "All comparisons", ...this.comparisons.tables),
      troubles: section("troubles", "Diverged and failed runs", ...this.troubles.nodes),
      machines: section("machines", "Machines", ...this.machines.nodes),
      report: section("report", "The report", this.frame),
    };
    const { interval, progress, ...rest } = this.parts;
    this.top = element("div", { class: "columns" }, interval, progress);
    this.updated = element("p");
    this.nodes = [header, element("main", {}, this.top, ...Object.values(rest)), element("footer", {}, this.updated)];
  }

  update(snapshot) {
    const { comparisons = [], troubles = [], machines = [], cohorts = [], progress } = snapshot;
    const something = ["running", "ended", "interrupted"].includes(snapshot.state);
    setText(this.name, snapshot.name ?? "");
    setText(this.folder, snapshot.folder ?? "");
    setText(this.state, STATES[snapshot.state] ?? snapshot.state);
    setAttribute(this.state, "class", `badge ${snapshot.state}`);
    setText(this.question, snapshot.question || snapshot.name || snapshot.folder || "Study");
    setText(this.verdict, snapshot.verdict ?? (something ? "No verdict yet: no seed has finished on both sides." : ""));
    setText(this.caution, caution(snapshot));
    setText(this.problem, problem(snapshot));
    setAttribute(this.live, "aria-label", snapshot.final ? "Verdict" : "Verdict so far");
    show(this.caution, this.caution.textContent);
    show(this.problem, this.problem.textContent);
    this.updateProgress(snapshot, progress);
    setText(this.parts.interval.firstElementChild, snapshot.final ? "The difference" : "The difference so far");
    this.updateReport(snapshot.report);
    const warnings = snapshot.warnings ?? [];
    show(this.warnings, warnings.length);
    patchList(this.warnings, warnings, { key: (text) => text, make: (text) => element("li", { text }), update: () => {} });
    this.comparisons.update(comparisons, snapshot.comparisons_count);
    this.cohorts.update(cohorts);
    this.curves.update(snapshot);
    this.troubles.update(troubles, snapshot.troubles_count);
    this.machines.update(machines);
    show(this.parts.interval, comparisons.length);
    show(this.parts.progress, cohorts.length);
    show(this.top, comparisons.length || cohorts.length);
    show(this.parts.curves, something);
    show(this.parts.others, comparisons.length > 1 && comparisons.some((item) => item.n > 0));
    show(this.parts.troubles, troubles.length);
    show(this.parts.machines, machines.length);
    const time = moment(snapshot.updated);
    setText(this.updated, `${time ? `Last change in the folder: ${time}. ` : ""}This page only reads: closing it changes nothing.`);
    document.title = title(snapshot);
  }

  /** The finished report in place, and on its own. A study that is continued takes it away again. */
  updateReport(address) {
    show(this.report, address);
    show(this.parts.report, address);
    if (address) setAttribute(this.report, "href", address);
    if (address) setAttribute(this.frame, "src", address);
    else if (this.frame.hasAttribute("src")) this.frame.removeAttribute("src");
  }

  updateProgress(snapshot, progress) {
    const known = progress && progress.runs > 0;
    show(this.bar.parentElement, known);
    if (!known) return;
    const share = percent(progress.epochs_done, progress.epochs);
    setAttribute(this.bar, "value", share);
    const parts = [
      `${share} %`, `${count(progress.runs_done)} of ${numberOf(progress.runs, "run")}`,
      `${count(progress.epochs_done)} of ${numberOf(progress.epochs, "epoch")}`,
    ];
    if (snapshot.state === "running") parts.push(left(progress.seconds_left), rate(progress.rate));
    const { doing } = snapshot;
    setText(this.doing, snapshot.state === "running" && doing && doing !== "training" ? doing : "");
    setText(this.facts, parts.filter(Boolean).join(" · "));
  }
}

/** The title of the tab carries the progress. */
export function title(snapshot) {
  const share = `${percent(snapshot.progress?.epochs_done, snapshot.progress?.epochs)} %`;
  const state = { running: share, ended: "ended", interrupted: `interrupted at ${share}` }[snapshot.state] ?? STATES[snapshot.state];
  return `${state} · ${snapshot.name || snapshot.folder || "Tiebreak"}`;
}
