// The page of `tiebreak watch`: a list of studies at /, one study at /study/ID. It reads and never writes.

import { setText, show } from "./elements.js";
import { ListView } from "./list_view.js";
import { follow, paced } from "./stream.js";
import { StudyView } from "./study_view.js";

const PACE = 0.5; // seconds between two drawings

const SAID = {
  open: "",
  lost: "Connection lost, trying again. What is shown below may be old.",
  over: "The study has ended, and so has the server of this page. What is shown below is the last state.",
  refused: "tiebreak watch was started again: open the link that it printed.",
  gone: "This study is no longer served: its folder was moved or deleted.",
};

function start(view, state, events) {
  const connection = document.getElementById("connection");
  document.getElementById("page").replaceChildren(...view.nodes);
  const draw = paced((snapshot) => view.update(snapshot), PACE);
  let ended = false; // a server beside a run ends with it
  follow({
    state, events,
    onSnapshot: (snapshot) => {
      ended = snapshot.state === "ended";
      draw(snapshot);
    },
    onConnection: (what) => {
      const how = what === "lost" && ended ? "over" : what;
      setText(connection, SAID[how]);
      show(connection, SAID[how]);
    },
  });
}

function startStudy(id, listed) {
  const address = `/api/study/${encodeURIComponent(id)}`;
  start(new StudyView({ listed }), address, `${address}/events`);
}

async function open() {
  if (location.search) history.replaceState(null, "", location.pathname); // the token is in a cookie now
  const named = location.pathname.match(/^\/study\/([^/]+)\/?$/);
  const answer = await fetch("/api/studies", { cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  const { studies, single } = await answer.json();
  const alone = single ?? studies.length === 1;
  if (named) startStudy(decodeURIComponent(named[1]), !alone);
  else if (alone) startStudy(studies[0].id, false);
  else start(new ListView(), "/api/studies", "/api/events");
}

async function openWhenReady() {
  try {
    await open();
  } catch (error) {
    setText(document.getElementById("connection"), `No answer from tiebreak watch (${error.message}), trying again.`);
    show(document.getElementById("connection"), true);
    setTimeout(openWhenReady, 3000);
  }
}

void openWhenReady();
