// The task graph over the steps of a task: the memory's notes `graph` (a whole plan) and `graph_status` (what changed).

const STATUS = {
  pending: { sign: "○", word: "pending" },
  running: { sign: "▶", word: "running" },
  done_unverified: { sign: "◌", word: "done, not verified" },
  verified: { sign: "✓", word: "verified" },
  failed: { sign: "✗", word: "failed" },
  skipped: { sign: "–", word: "skipped" },
};

/** The graph after each step: [{step, graph, status, changed}], the first before any. Empty where nothing was noted. */
function graphHistory(items) {
  const found = [];
  let graph = null,
    status = {};
  for (const item of items) {
    if (item.t !== "memory_note" || (item.kind !== "graph" && item.kind !== "graph_status")) continue;
    let changed = [];
    if (item.kind === "graph") {
      graph = item.graph;
      const before = status;
      status = Object.fromEntries(graph.nodes.map((node) => [node.id, node.status]));
      changed = graph.nodes.filter((node) => before[node.id] !== node.status).map((node) => node.id);
    } else {
      status = { ...status, ...item.changed };
      changed = Object.keys(item.changed);
    }
    const last = found[found.length - 1];
    const now = { step: item.step || 0, graph, status, changed };
    if (last && last.step === now.step)
      found[found.length - 1] = { ...now, changed: [...new Set([...last.changed, ...changed])] };
    else found.push(now);
  }
  return found;
}

function at(history, step) {
  let now = history[0];
  for (const one of history) if (one.step <= step) now = one;
  return now.step === step ? now : { ...now, changed: [] };
}

function drawGraph(now) {
  const { graph, status, changed } = now;
  const wide = Math.min(innerWidth, 1100) > 760;
  const depth = new Map(graph.nodes.map((node) => [node.id, 0]));
  // nodes come in topological order: prerequisites first
  for (const node of graph.nodes)
    for (const [u, w] of graph.edges) if (w === node.id) depth.set(w, Math.max(depth.get(w), (depth.get(u) || 0) + 1));
  const layers = [];
  for (const node of graph.nodes) (layers[depth.get(node.id)] ||= []).push(node);
  const NW = 178,
    NH = 76,
    GX = 34,
    GY = 22;
  const across = wide ? layers.length : Math.max(...layers.map((layer) => layer.length));
  const down = wide ? Math.max(...layers.map((layer) => layer.length)) : layers.length;
  const W = across * (NW + GX) - GX + 8,
    H = down * (NH + GY) - GY + 8;
  const spot = new Map();
  layers.forEach((layer, l) =>
    layer.forEach((node, n) => {
      const [a, b] = wide ? [l, n + (down - layer.length) / 2] : [n + (across - layer.length) / 2, l];
      spot.set(node.id, { x: 4 + a * (NW + GX), y: 4 + b * (NH + GY) });
    }),
  );
  const edges = graph.edges
    .filter(([u, w]) => spot.has(u) && spot.has(w))
    .map(([u, w]) => {
      const [a, b] = [spot.get(u), spot.get(w)];
      const [x1, y1, x2, y2] = wide ? [a.x + NW, a.y + NH / 2, b.x, b.y + NH / 2] : [a.x + NW / 2, a.y + NH, b.x + NW / 2, b.y];
      const bend = wide
        ? `C${(x1 + x2) / 2},${y1} ${(x1 + x2) / 2},${y2} ${x2},${y2}`
        : `C${x1},${(y1 + y2) / 2} ${x2},${(y1 + y2) / 2} ${x2},${y2}`;
      return s("g", { class: "edge" }, s("path", { d: `M${x1},${y1}${bend}` }), s("circle", { cx: x2, cy: y2, r: 3 }));
    });
  const nodes = graph.nodes.map((node) => {
    const { x, y } = spot.get(node.id);
    const state = status[node.id] || "pending";
    const known = STATUS[state] || { sign: "?", word: state };
    return s(
      "g",
      { class: `node ${state}${changed.includes(node.id) ? " changed" : ""}`, transform: `translate(${x},${y})` },
      s("title", {}, `${node.id}: ${node.action} (${node.agent}, ${known.word})`),
      s("rect", { width: NW, height: NH, rx: 8 }),
      s("text", { class: "node-head", x: 10, y: 18 }, `${known.sign} ${clip(node.id, 8)} · ${clip(node.agent, 14)}`),
      wrap(node.action, 23, 2).map((line, n) => s("text", { x: 10, y: 36 + 15 * n }, line)),
      s("text", { class: "node-state", x: 10, y: NH - 7 }, known.word),
    );
  });
  const words = graph.nodes
    .map((node) => `${node.id} ${node.action}: ${(STATUS[status[node.id]] || { word: status[node.id] }).word}`)
    .join("; ");
  return s(
    "svg",
    { class: "graph", width: W, height: H, viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Task graph. ${words}` },
    edges,
    nodes,
  );
}

const clip = (text, most) => (String(text).length > most ? String(text).slice(0, most - 1) + "…" : String(text));

function wrap(text, width, most) {
  const lines = [""];
  for (const word of String(text).split(/\s+/)) {
    const last = lines[lines.length - 1];
    if (last && (last + " " + word).length > width) lines.push(word);
    else lines[lines.length - 1] = last ? last + " " + word : word;
  }
  const kept = lines.slice(0, most).map((line) => clip(line, width));
  if (lines.length > most) kept[most - 1] = clip(kept[most - 1] + " …", width);
  return kept;
}

/** The graph with a slider over the steps, or null where the run noted none. */
function graphSection(found) {
  const history = graphHistory(found.items);
  if (!history.length) return null;
  const last = Math.max(
    history[history.length - 1].step,
    ...found.items.filter((item) => item.t === "step").map((item) => item.step),
  );
  const figure = h("div", { class: "scroll figure", tabindex: "0" });
  const words = h("output", { for: "slider", class: "slider-words" });
  const slider = h("input", {
    id: "slider",
    type: "range",
    min: 0,
    max: last,
    value: last,
    step: 1,
    oninput: () => show(Number(slider.value)),
  });
  const jump = (step) => {
    slider.value = step;
    show(step);
  };
  const show = (step) => {
    const now = at(history, step);
    const done = found.items.find((item) => item.t === "step" && item.step === step);
    words.textContent =
      step === 0 ? "before the first step" : `step ${step} of ${last}${done ? `: ${clip(done.action, 90)}` : ""}`;
    figure.replaceChildren(
      now.graph.prose
        ? h(
            "ol",
            {},
            now.graph.prose.map((line) => h("li", {}, line)),
          )
        : drawGraph(now),
    );
    slider.setAttribute("aria-valuetext", words.textContent);
    notes.replaceChildren(...alignment(found.items, step));
  };
  const notes = h("div", { class: "slider-notes" });
  const changes = history.map((one) => one.step);
  const step = (by) => jump(Math.min(last, Math.max(0, Number(slider.value) + by)));
  const next = (by) => {
    const at = Number(slider.value);
    const to = by > 0 ? changes.find((one) => one > at) : [...changes].reverse().find((one) => one < at);
    if (to !== undefined) jump(to);
  };
  const button = (text, label, click) => h("button", { type: "button", "aria-label": label, title: label, onclick: click }, text);
  show(last);
  return section(
    "graph",
    "Task graph",
    null,
    h(
      "div",
      { class: "slider" },
      button("«", "change before", () => next(-1)),
      button("‹", "step before", () => step(-1)),
      h("label", { class: "hidden", for: "slider" }, "Step"),
      slider,
      button("›", "next step", () => step(1)),
      button("»", "next change", () => next(1)),
    ),
    words,
    figure,
    notes,
  );
}

/** What the memory found and said at a step. */
function alignment(items, step) {
  return items
    .filter(
      (item) => item.t === "memory_note" && item.step === step && (item.kind === "divergence" || item.kind === "correction"),
    )
    .map(noteLine);
}
