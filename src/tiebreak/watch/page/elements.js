// Elements of the page. Text is set as text, never as markup, so a name from a study file stays a name.

const SVG = "http://www.w3.org/2000/svg";

/** An element with a class, a text and attributes (all optional), and its children. */
export function element(tag, options = {}, ...children) {
  return dressed(document.createElement(tag), options, children);
}

/** The same for a part of an SVG picture. */
export function svg(tag, options = {}, ...children) {
  return dressed(document.createElementNS(SVG, tag), options, children);
}

function dressed(node, { text, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  if (text !== undefined) node.textContent = text;
  node.append(...children.filter((child) => child !== null));
  return node;
}

// An update that changes nothing touches nothing: a selection, the focus and what a screen reader reads stay.

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  const text = String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

export function show(node, visible) {
  if (node.hidden === Boolean(visible)) node.hidden = !visible;
}

const KEPT = new WeakMap(); // parent -> its children by key

/** Make the children of `parent` follow `items`: each keeps its element from update to update. */
export function patchList(parent, items, { key, make, update }) {
  const before = KEPT.get(parent) ?? new Map();
  const after = new Map();
  items.forEach((item, place) => {
    let name = key(item, place);
    while (after.has(name)) name = `${name} `; // two of one name
    const node = before.get(name) ?? make(item, place);
    before.delete(name);
    update(node, item, place);
    after.set(name, node);
  });
  for (const node of before.values()) node.remove();
  const focus = document.activeElement;
  let place = parent.firstElementChild;
  for (const node of after.values()) {
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  if (focus !== document.activeElement && parent.contains(focus)) focus.focus({ preventScroll: true });
  KEPT.set(parent, after);
}

/** The rows of a table's body; `cells` gives the texts of a row, the first of them its heading. */
export function patchRows(body, items, key, cells) {
  patchList(body, items, {
    key,
    make: (item, place) => {
      const [first, ...rest] = cells(item, place);
      return element("tr", {}, element("th", { scope: "row", text: first }), ...rest.map((text) => element("td", { text })));
    },
    update: (row, item, place) => cells(item, place).forEach((text, column) => setText(row.children[column], text)),
  });
}

/** A table in a box that scrolls sideways by itself and can be reached by keyboard. */
export function table(label, headings) {
  const head = element("tr", {}, ...headings.map((text) => element("th", { scope: "col", text })));
  const body = element("tbody");
  const whole = element("table", {}, element("thead", {}, head), body);
  return { box: element("div", { class: "box", tabindex: 0, role: "region", "aria-label": label }, whole), head, body };
}

/** A section with a heading; hidden while it has nothing to show. */
export function section(id, heading, ...children) {
  return element("section", { "aria-labelledby": id }, element("h2", { id, text: heading }), ...children);
}
