// Elements, numbers, and the address. Text only ever becomes a text node, so that nothing a model wrote can become markup.

const SVG = "http://www.w3.org/2000/svg";
const NOTHING = "–";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// --- numbers ---------------------------------------------------------------------------------------------------------
const known = (value) => value !== null && value !== undefined;
const minus = (text) => text.replace("-", "−");
const fixed = (value, digits) => (known(value) ? minus(value.toFixed(digits)) : NOTHING);
const percent = (value) => (known(value) ? (100 * value).toFixed(1) : NOTHING);
const signed = (value, digits = 1) => (known(value) ? (value > 0 ? "+" : "") + minus(value.toFixed(digits)) : NOTHING);
const count = (value) => (known(value) ? Math.round(value).toLocaleString("en-US") : NOTHING);

/** A count short enough for a phone: 1,234 · 12.3k · 4.56M. */
function short(value) {
  if (!known(value)) return NOTHING;
  if (value < 10000) return count(value);
  return value < 1e6 ? (value / 1e3).toFixed(1) + "k" : (value / 1e6).toFixed(2) + "M";
}

const dollars = (value) =>
  !known(value) ? NOTHING : value === 0 ? "$0" : "$" + (value < 0.01 ? value.toPrecision(2) : value.toFixed(2));
const pvalue = (value) => (!known(value) ? NOTHING : value < 0.001 ? "<0.001" : value.toFixed(3));
/** p=0.012, p<0.001. */
const equals = (value) => (known(value) && value < 0.001 ? "p<0.001" : `p=${pvalue(value)}`);
const range = (pair, scale, digits = 1) => (pair ? `[${pair.map((v) => fixed(v * scale, digits)).join(", ")}]` : `[${NOTHING}]`);
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

// --- the address: #/ · #/tasks · #run · #run/task · #run+run/task -------------------------------------------------------
function readAddress() {
  const text = location.hash.slice(1);
  if (text === "" || text === "/") return { view: "overview" };
  if (text === "/tasks") return { view: "tasks" };
  const decode = (part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part; // half an escape, typed by hand
    }
  };
  const [runs, task] = text.split("/");
  const [first, second] = runs.split("+").map(decode);
  if (task === undefined) return { view: "run", run: first };
  if (second === undefined) return { view: "task", run: first, task: decode(task) };
  return { view: "compare", run: first, other: second, task: decode(task) };
}

const runAddress = (run) => "#" + encodeURIComponent(run);
const taskAddress = (run, task) => `${runAddress(run)}/${encodeURIComponent(task)}`;
const compareAddress = (run, other, task) => `${runAddress(run)}+${encodeURIComponent(other)}/${encodeURIComponent(task)}`;

const say = (text) => (document.getElementById("said").textContent = text);

/** What a reader set for this page; lost with it where the browser keeps nothing for files. */
const kept = {
  get(name) {
    try {
      return localStorage.getItem("memarena." + name);
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem("memarena." + name, value);
    } catch {
      /* a private window: the choice holds until the page is closed */
    }
  },
};
