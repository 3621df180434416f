// All studies that are served: question, verdict so far, progress, time left.

import { element, patchList, setAttribute, setText, show } from "./elements.js";
import { left, numberOf, percent } from "./numbers.js";
import { STATES } from "./study_view.js";

export class ListView {
  constructor() {
    this.heading = element("h1", { text: "Studies" });
    this.summary = element("p", { class: "muted", role: "status" });
    this.list = element("ul", { class: "studies" });
    this.nodes = [
      element("header", {}, element("p", { class: "eyebrow" }, element("strong", { text: "Tiebreak" })), this.heading, this.summary),
      element("main", {}, this.list),
    ];
  }

  update({ studies, single }) {
    if (single) location.reload(); // the folder that was asked for has become a study: the first page is its page
    const running = studies.filter((study) => study.state === "running").length;
    const words = studies.length ? `${numberOf(studies.length, "folder")}, ${running || "none"} running` : "No results folder is here yet.";
    setText(this.summary, words);
    document.title = running ? `${running} running · Tiebreak` : "Tiebreak";
    patchList(this.list, studies, { key: (study) => study.id, make, update });
  }
}

function make(study) {
  const part = (name) => element("p", { class: name });
  const bar = element("progress", { max: 100 });
  return element(
    "li", {},
    element("div", {}, element("h2", {}, element("a", { href: `/study/${encodeURIComponent(study.id)}` })), part("question"), part("folder")),
    element("div", {}, part("verdict"), part("caution")),
    element("div", { class: "how-far" }, element("span", { class: "badge" }), bar, part("remark")),
  );
}

function update(item, study) {
  const [what, answer, far] = item.children, { progress } = study;
  const name = study.name || study.folder || study.id, link = what.querySelector("a");
  setText(link, name);
  setAttribute(link, "aria-label", study.folder ? `${name}, ${study.folder}` : name); // many folders may hold one study
  setText(what.querySelector(".question"), study.question ?? "");
  setText(what.querySelector(".folder"), study.folder ?? "");
  setText(answer.children[0], study.problem ?? study.verdict ?? (study.state === "empty" ? "" : "No verdict yet."));
  setText(answer.children[1], study.verdict && !study.final && !study.verdict.includes("Not final") ? "Not final." : "");
  const [badge, bar, remark] = far.children;
  setText(badge, STATES[study.state] ?? study.state);
  setAttribute(badge, "class", `badge ${study.state}`);
  const known = progress && progress.runs > 0, share = percent(progress?.epochs_done, progress?.epochs);
  show(bar, known);
  setAttribute(bar, "value", share);
  setAttribute(bar, "aria-label", `Epochs trained of ${name}, ${study.folder}`);
  const time = study.state === "running" ? left(progress?.seconds_left) : "";
  setText(remark, known ? [`${share} %`, time].filter(Boolean).join(", ") : "");
}
