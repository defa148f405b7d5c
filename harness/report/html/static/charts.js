// Figures, drawn here. Colours are Okabe and Ito's; what a colour says stands beside it in words too.

const PHASES = ["retrieve", "plan", "act", "align", "write", "validate", "judge"];

/** Round numbers from 0 to at least `most`. */
function ticks(most, wanted = 4) {
  if (!(most > 0)) return [0, 1];
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= rough);
  const found = [];
  for (let n = 0; ; n++) {
    found.push(n * step);
    if (n * step >= most) return found;
  }
}

function curveFigure(run, base) {
  const W = 300,
    H = 170,
    left = 34,
    right = 8,
    top = 8,
    bottom = 24;
  const most = Math.max(run.planned, base ? base.planned : 0, 1);
  const x = (position) => left + ((position + 0.5) / most) * (W - left - right);
  const y = (score) => top + (1 - score) * (H - top - bottom);
  const middle = (block) => x((block.first + block.last) / 2);
  const line = (blocks) =>
    blocks.map((block, n) => `${n ? "L" : "M"}${middle(block).toFixed(1)},${y(block.mean).toFixed(1)}`).join("");
  const parts = [];
  for (const score of [0, 0.25, 0.5, 0.75, 1]) {
    parts.push(s("line", { class: "grid", x1: left, x2: W - right, y1: y(score), y2: y(score) }));
    parts.push(s("text", { class: "axis", x: left - 5, y: y(score) + 3.5, "text-anchor": "end" }, 100 * score));
  }
  for (const at of new Set([1, Math.round(most / 2), most]))
    parts.push(s("text", { class: "axis", x: x(at - 1), y: H - 8, "text-anchor": at === most ? "end" : "middle" }, at));
  const banded = run.curve.filter((block) => block.interval);
  if (banded.length > 1) {
    const upper = banded.map((b) => `${middle(b).toFixed(1)},${y(b.interval[1]).toFixed(1)}`);
    const lower = banded.map((b) => `${middle(b).toFixed(1)},${y(b.interval[0]).toFixed(1)}`).reverse();
    parts.push(s("polygon", { class: "band", points: [...upper, ...lower].join(" ") }));
  } else
    for (const b of banded)
      parts.push(s("line", { class: "whisker", x1: middle(b), x2: middle(b), y1: y(b.interval[0]), y2: y(b.interval[1]) }));
  if (base && base !== run && base.curve.length) parts.push(s("path", { class: "curve base", d: line(base.curve) }));
  if (run.curve.length) parts.push(s("path", { class: "curve", d: line(run.curve) }));
  for (const b of run.curve) {
    const title = s("title", {}, `tasks ${b.first + 1} to ${b.last + 1}: ${percent(b.mean)} ${range(b.interval, 100)}, n=${b.n}`);
    parts.push(s("circle", { class: "dot", cx: middle(b), cy: y(b.mean), r: 3.2 }, title));
  }
  const words = run.curve.map((b) => `${b.first + 1}–${b.last + 1}: ${percent(b.mean)}`).join("; ");
  return s(
    "svg",
    {
      viewBox: `0 0 ${W} ${H}`,
      role: "img",
      "aria-label": `Score over stream position, ${run.name}: ${words || "nothing measured"}`,
    },
    parts,
  );
}

/** One bar a run, in parts by phase; what is not the method's own (judge, embeddings) is in the table below it. */
function tokenFigure(among) {
  const sums = among.map((run) => {
    const by = new Map();
    for (const row of run.usage) if (row.part === "method") by.set(row.phase, (by.get(row.phase) || 0) + row.input + row.output);
    return by;
  });
  const each = among.map((run) => Object.keys(run.results).length);
  const totals = sums.map((by, n) => (each[n] ? [...by.values()].reduce((a, b) => a + b, 0) / each[n] : 0));
  const most = ticks(Math.max(...totals)).pop();
  return h(
    "div",
    { class: "bars", role: "list" },
    among.map((run, n) => {
      const label = h("span", { class: "bar-name" }, run.name, " ", scriptedMark(run));
      const bar = s("svg", { class: "bar", viewBox: "0 0 1000 20", preserveAspectRatio: "none", "aria-hidden": "true" });
      let at = 0;
      const words = [];
      for (const phase of PHASES) {
        const tokens = each[n] ? (sums[n].get(phase) || 0) / each[n] : 0;
        if (!tokens) continue;
        const wide = (1000 * tokens) / most;
        bar.append(
          s(
            "rect",
            { class: `phase ${phase}`, x: at, y: 0, width: Math.max(wide - 2, 0.8), height: 20 },
            s("title", {}, `${phase}: ${count(tokens)} tokens a task`),
          ),
        );
        at += wide;
        words.push(`${phase} ${short(tokens)}`);
      }
      const value = run.tokens ? short(totals[n]) + (run.tokens.estimated ? " est." : "") : NOTHING;
      return h(
        "div",
        { class: "bar-row", role: "listitem" },
        label,
        bar,
        h("span", { class: "bar-value" }, value),
        h("span", { class: "bar-words" }, words.join(" · ") || NOTHING),
      );
    }),
  );
}

/** Score over what it cost a task; runs without that number are left out and named below. */
function costFigure(among, kind) {
  const value = (run) => {
    const n = Object.keys(run.results).length;
    if (!n || !run.score) return null;
    if (kind === "cost") return known(run.cost) ? run.cost / n : null;
    return run.tokens ? run.tokens.method / n : null;
  };
  const points = among.map((run) => ({ run, value: value(run) }));
  const drawn = points.filter((point) => known(point.value));
  const missing = points.filter((point) => !known(point.value)).map((point) => point.run.name);
  const W = 640,
    H = 300,
    left = 40,
    right = 16,
    top = 12,
    bottom = 42;
  const marks = ticks(Math.max(0, ...drawn.map((point) => point.value)));
  const most = marks[marks.length - 1];
  const x = (v) => left + (v / most) * (W - left - right);
  const y = (score) => top + (1 - score) * (H - top - bottom);
  const parts = [];
  for (const score of [0, 0.25, 0.5, 0.75, 1]) {
    parts.push(s("line", { class: "grid", x1: left, x2: W - right, y1: y(score), y2: y(score) }));
    parts.push(s("text", { class: "axis", x: left - 6, y: y(score) + 4, "text-anchor": "end" }, 100 * score));
  }
  marks.forEach((mark, n) =>
    parts.push(
      s(
        "text",
        { class: "axis", x: x(mark), y: H - bottom + 16, "text-anchor": n === marks.length - 1 ? "end" : "middle" },
        kind === "cost" ? dollars(mark) : short(mark),
      ),
    ),
  );
  parts.push(
    s(
      "text",
      { class: "axis", x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" },
      kind === "cost" ? "US dollars a task (all calls)" : "tokens a task (the method's own)",
    ),
  );
  drawn.forEach((point, n) => {
    const { run } = point;
    const at = x(point.value),
      high = y(run.score.value);
    const title = s(
      "title",
      {},
      `${run.name}: ${percent(run.score.value)} ${range(run.score.interval, 100)}, ${kind === "cost" ? dollars(point.value) : count(point.value)} a task`,
    );
    if (run.score.interval)
      parts.push(
        s("line", {
          class: `whisker series${n % 7}`,
          x1: at,
          x2: at,
          y1: y(run.score.interval[0]),
          y2: y(run.score.interval[1]),
        }),
      );
    parts.push(
      s(
        "g",
        {},
        s("circle", { class: `point series${n % 7}`, cx: at, cy: high, r: 9 }),
        s("text", { class: "rank", x: at, y: high + 3.8, "text-anchor": "middle" }, n + 1),
        title,
      ),
    );
  });
  const words = drawn
    .map(
      (point) =>
        `${point.run.name}: ${percent(point.run.score.value)} at ${kind === "cost" ? dollars(point.value) : count(point.value)}`,
    )
    .join("; ");
  const figure = s(
    "svg",
    { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Score over cost. ${words || "Nothing measured"}` },
    parts,
  );
  const names = h(
    "ol",
    { class: "ranks" },
    drawn.map(({ run, value }) =>
      h(
        "li",
        {},
        run.name,
        " ",
        scriptedMark(run),
        h("span", { class: "interval" }, ` ${percent(run.score.value)} at ${kind === "cost" ? dollars(value) : short(value)}`),
      ),
    ),
  );
  return h(
    "div",
    { class: "cost" },
    h("div", { class: "scroll", tabindex: "0" }, figure),
    h("div", {}, names, missing.length ? h("p", { class: "note" }, `${NOTHING} not known for ${missing.join(", ")}`) : null),
  );
}
