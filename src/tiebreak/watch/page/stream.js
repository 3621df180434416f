// The live connection: server-sent events, again after a loss. A hidden tab asks now and then, for its title.

const HIDDEN_SECONDS = 30; // a hidden tab gives its connection back (a browser holds six for one server) and asks this often
const ASLEEP_SECONDS = 5; // after that long out of sight a connection may be dead without knowing
const FIRST_WAIT = 1, LONGEST_WAIT = 20; // seconds between attempts

/**
 * Call `onSnapshot` with every snapshot from `events`, and `onConnection` with "open", "lost", or, where the server
 * answers, "gone" (it no longer knows the address `state`) or "refused" (it has another token).
 */
export function follow({ state, events, onSnapshot, onConnection }) {
  let source = null, waiting = 0, polling = 0, wait = FIRST_WAIT, hiddenSince = 0;

  function open() {
    close();
    const mine = source = new EventSource(events);
    mine.addEventListener("open", () => { wait = FIRST_WAIT; onConnection("open"); });
    mine.addEventListener("snapshot", (event) => onSnapshot(JSON.parse(event.data)));
    mine.addEventListener("error", () => {
      if (mine !== source) return;
      if (mine.readyState === EventSource.CLOSED) retry(); // refused: the browser does not try again by itself
      else onConnection("lost");
    });
  }

  function close() {
    clearTimeout(waiting);
    clearInterval(polling);
    source?.close();
    source = null;
  }

  async function ask() {
    try {
      const answer = await fetch(state, { cache: "no-store" });
      if (answer.status === 404) onConnection("gone");
      else if (answer.status === 401) onConnection("refused");
      else if (answer.ok && document.hidden) onSnapshot(await answer.json());
      else onConnection("lost"); // it answers, but without events
    } catch {
      onConnection("lost");
    }
  }

  function retry() {
    close();
    void ask();
    waiting = setTimeout(open, 1000 * wait);
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      hiddenSince = Date.now();
      polling = setInterval(() => { source?.close(); source = null; void ask(); }, 1000 * HIDDEN_SECONDS);
    } else {
      clearInterval(polling);
      if (source === null || Date.now() - hiddenSince > 1000 * ASLEEP_SECONDS) open();
    }
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  addEventListener("online", open);
  open();
}

/** Call `draw` with the newest value, at most every `seconds`. */
export function paced(draw, seconds) {
  let newest, drawn = -Infinity, planned = false;
  function now() {
    planned = false;
    drawn = performance.now();
    draw(newest);
  }
  return (value) => {
    newest = value;
    if (planned) return;
    planned = true;
    const pause = Math.max(0, 1000 * seconds - (performance.now() - drawn));
    setTimeout(() => (document.hidden ? now() : requestAnimationFrame(now)), pause); // no frames out of sight
  };
}
