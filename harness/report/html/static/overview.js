// Results: the leaderboard, and the figures that go with it.

const COLUMNS = [
  { key: "name", name: "Run", text: true, value: (run) => run.name },
  { key: "score", name: "Score, %", value: (run) => (run.score ? run.score.value : null) },
  { key: "n", name: "n", value: (run) => (run.score ? run.score.n : 0) },
  { key: "infra", name: "Infra", title: "tasks lost to infrastructure failures: not in n", value: (run) => run.infra_failures.length },
  { key: "change", name: "Δ points", title: "paired difference to the baseline on common tasks, with its 95 % bootstrap interval", value: (run) => versus(run).change },
  { key: "holm", name: "p (Holm)", title: "exact McNemar, or a sign-flip permutation for graded scores; in brackets adjusted over all runs compared with this baseline", value: (run) => versus(run).holm },
  { key: "tokens", name: "Tokens", title: "the method's own: input + output", value: (run) => (run.tokens ? run.tokens.method : null) },
  { key: "judge", name: "Judge", title: "tokens of the benchmark's own judge", value: (run) => (run.tokens ? run.tokens.judge : null) },
  { key: "embeddings", name: "Embed.", title: "tokens of embedding calls", value: (run) => (run.tokens ? run.tokens.embeddings : null) },
  { key: "cost", name: "Cost", title: "US dollars of all committed calls; – where a price is not known", value: (run) => run.cost },
];

const versus = (run) => (baseline() && data.versus[baseline().id][run.id]) || {};

function overview() {
  const among = selected();
  const place = h("div", { class: "page" });
  place.append(h("h1", { class: "hidden" }, "Results"), controls());
  if (!among.length) {
    place.append(h("p", { class: "empty" }, "No run fits this selection."));
    return place;
  }
  const base = baseline();
  const sorted = inOrder(among);
  place.append(scriptedNote(among), leaderboard(sorted), footnotes(among));
  place.append(
    section("curves", "Learning curves", "Mean score of consecutive blocks of tasks over the position in the stream, with 95 % intervals. The dashed grey line is the baseline, where the two may be compared. The benchmark's own order of tasks is part of a trend.",
      h("div", { class: "multiples" }, sorted.map((run) => h("figure", {}, h("figcaption", {}, h("a", { href: runAddress(run.id) }, run.name), " ", scriptedMark(run)), curveFigure(run, versus(run).why ? null : base), trendLine(run))))),
    section("tokens", "Tokens by phase and role", "The method's own tokens a task, input and output.", legend(sorted), tokenFigure(sorted), roleTable(sorted)),
    costSection(sorted),
  );
  return place;
}

const section = (id, title, text, ...content) =>
  h("section", { "aria-labelledby": `h-${id}` }, h("h2", { id: `h-${id}` }, title), text && h("p", { class: "note" }, text), content);

function controls() {
  const choices = Object.keys(state.filter).map((key) => {
    const values = [...new Set(data.runs.map((run) => run.labels[key]))].sort();
    return values.length < 2 ? null : choice(`f-${key}`, { env: "Environment", host: "Host", method: "Method", models: "Models" }[key], state.filter[key], [["", "all"], ...values.map((v) => [v, v])], (v) => {
      state.filter[key] = v;
      draw();
    });
  });
  const base = baseline();
  const bases = selected().map((run) => [run.id, run.name]);
  return h("form", { class: "controls", onsubmit: (event) => event.preventDefault() }, choices, bases.length > 1 && choice("baseline", "Baseline", base.id, bases, (v) => {
    state.baseline = v;
    draw();
  }), h("span", { class: "phone" }, choice("sort", "Sort by", state.sort.key, COLUMNS.map((one) => [one.key, one.name]), (v) => {
    sortBy(v);
    draw();
  })));
}

function choice(id, label, value, options, changed) {
  const list = h("select", { id, onchange: (event) => changed(event.target.value) }, options.map(([v, text]) => h("option", { value: v, selected: v === value }, text)));
  return h("label", { class: "choice", for: id }, h("span", {}, label), list);
}

function inOrder(among) {
  const column = COLUMNS.find((one) => one.key === state.sort.key);
  return [...among].sort((a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (!known(x) || !known(y)) return known(x) ? -1 : known(y) ? 1 : 0; // what is not known comes last either way
    const order = column.text ? x.localeCompare(y) : x - y;
    return (state.sort.down ? -order : order) || a.number - b.number;
  });
}

/** Said before any number, because a scripted run looks like any other. */
function scriptedNote(among) {
  const names = among.filter((run) => run.scripted).map((run) => run.name);
  if (!names.length) return null;
  const which = names.length === among.length ? "All of these runs are scripted" : `Scripted: ${names.join(", ")}`;
  return h("p", { class: "box scripted-note" }, `${which}. A script gave the answers, no model: they show that the parts work, and measure no model.`);
}

function sortBy(key) {
  const column = COLUMNS.find((one) => one.key === key);
  state.sort = { key, down: key === state.sort.key ? !state.sort.down : !column.text };
}

function leaderboard(sorted) {
  const head = COLUMNS.map((one) => {
    const sign = one.key !== state.sort.key ? "" : state.sort.down ? " ↓" : " ↑";
    const click = () => {
      sortBy(one.key);
      draw(`sort-${one.key}`);
    };
    const sort = one.key !== state.sort.key ? "none" : state.sort.down ? "descending" : "ascending";
    return h("th", { scope: "col", "aria-sort": sort, class: one.text ? "" : "num" }, h("button", { type: "button", class: "sort", id: `sort-${one.key}`, title: one.title, onclick: click }, one.name, h("span", { class: "arrow", "aria-hidden": "true" }, sign)));
  });
  const table = h("table", { class: "board" }, h("caption", { class: "hidden" }, "Leaderboard"), h("thead", {}, h("tr", {}, head)), h("tbody", {}, sorted.map(boardRow)));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Leaderboard" }, table);
}

function boardRow(run) {
  const base = baseline();
  const cell = (name, ...content) => h("td", { class: "num", "data-name": name }, content);
  const score = run.score;
  return h("tr", { class: run === base ? "baseline" : "" },
    h("th", { scope: "row" }, h("a", { href: runAddress(run.id) }, run.name), " ", run === base && h("span", { class: "tag" }, "baseline"), " ", scriptedMark(run), " ", run.status !== "finished" && h("span", { class: "tag warn" }, "incomplete"), " ",
      run.departures.length ? h("a", { class: "tag warn", href: "#notes", title: run.departures.join("; "), onclick: toNotes }, "≠") : null),
    cell("Score, %", score ? [scoreBar(score), h("span", { class: "value" }, percent(score.value)), " ", h("span", { class: "interval" }, range(score.interval, 100))] : NOTHING),
    cell("n", score ? score.n : 0),
    cell("Infra", run.infra_failures.length ? `+${run.infra_failures.length}` : "0"),
    ...versusCells(run, base, cell),
    cell("Tokens", run.tokens ? [short(run.tokens.method), run.tokens.estimated && h("span", { class: "interval" }, " est.")] : NOTHING),
    cell("Judge", run.tokens ? short(run.tokens.judge) : NOTHING),
    cell("Embed.", run.tokens ? short(run.tokens.embeddings) : NOTHING),
    cell("Cost", dollars(run.cost)));
}

function toNotes(event) {
  event.preventDefault();
  document.getElementById("notes").scrollIntoView({ block: "start" });
}

function versusCells(run, base, cell) {
  const found = versus(run);
  if (run === base || !known(found.change)) {
    const why = found.why ? `not compared: ${found.why.join("; ")}` : null;
    return [cell("Δ points", h("span", { title: why }, NOTHING)), cell("p (Holm)", NOTHING)];
  }
  const clear = found.holm < 0.05;
  return [
    cell("Δ points", h("span", { class: clear ? "clear" : "" }, signed(found.change)), " ", h("span", { class: "interval" }, range(found.interval, 1)), found.pairs !== run.score.n && h("span", { class: "interval" }, ` ${plural(found.pairs, "pair")}`)),
    cell("p (Holm)", h("span", { title: `${found.test}: better on ${found.better}, worse on ${found.worse} of ${found.pairs}` }, pvalue(found.p), " (", h("span", { class: clear ? "clear" : "" }, pvalue(found.holm)), ")")),
  ];
}

function scoreBar(score) {
  const interval = score.interval || [score.value, score.value];
  return s("svg", { class: "score", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "track", x: 0, y: 5, width: 100, height: 2 }), s("rect", { class: "span", x: 100 * interval[0], y: 4, width: Math.max(100 * (interval[1] - interval[0]), 0.5), height: 4 }), s("rect", { class: "at", x: Math.min(100 * score.value, 98.4), y: 0, width: 1.6, height: 12 }));
}

/** Why runs cannot be set against a paper's number, and what else their reader must know; said once for all whom it concerns. */
function footnotes(among) {
  const said = new Map();
  const add = (sign, text, run) => {
    const key = `${sign} ${text}`;
    said.set(key, [...(said.get(key) || []), run.name]);
  };
  for (const run of among) {
    run.departures.forEach((text) => add("≠", text, run));
    run.caveats.forEach((text) => add("·", text, run));
    const why = versus(run).why;
    if (why) add("Δ", `not compared with ${baseline().name}: ${why.join("; ")}`, run);
  }
  const lines = [...said].map(([text, names]) => h("li", {}, text, names.length === among.length && among.length > 1 ? h("span", { class: "who" }, " (all runs)") : h("span", { class: "who" }, ` (${names.join(", ")})`)));
  return h("details", { class: "notes", id: "notes", open: lines.length <= 8 },
    h("summary", {}, "How to read this", lines.length ? ` · ${plural(lines.length, "note")}` : ""),
    h("p", {}, "Score: mean with its 95 % interval (Wilson for 0/1 scores, else bootstrap). Δ: against the baseline on the tasks that both have, paired bootstrap. p: exact McNemar, or a sign-flip permutation where scores are graded; in brackets after Holm's adjustment. Bold: below 0.05 after it. – is not known; ≠ must not be compared with a paper's number. est.: tokens counted here, not stated by the provider."),
    lines.length ? h("ul", {}, lines) : null);
}

function trendLine(run) {
  const found = run.trend;
  const text = found ? `trend ${signed(100 * found.slope)} points a 100 tasks ${range(found.interval, 100)}, p=${pvalue(found.p)}` : "trend –";
  return h("p", { class: "note" }, text);
}

const legend = (among) => h("ul", { class: "legend" }, PHASES.filter((phase) => among.some((run) => run.usage.some((row) => row.part === "method" && row.phase === phase))).map((phase) => h("li", {}, s("svg", { viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, s("rect", { class: `phase ${phase}`, width: 12, height: 12, rx: 2 })), phase)));

function roleTable(among) {
  const rows = among.flatMap((run) => run.usage.map((row) => ({ run, ...row })));
  const head = ["Run", "Role", "Phase", "Calls", "Input", "Cached", "Output", "Reasoning", "Cost"];
  return h("details", {}, h("summary", {}, "All numbers, by role and phase"),
    h("div", { class: "scroll", tabindex: "0" }, h("table", {}, h("thead", {}, h("tr", {}, head.map((name, n) => h("th", { scope: "col", class: n > 2 ? "num" : "" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("td", {}, row.run.name), h("td", {}, row.role, row.part === "method" ? null : h("span", { class: "tag" }, row.part)), h("td", {}, row.phase),
        [row.calls, row.input, row.cached, row.output, row.reasoning].map((n) => h("td", { class: "num" }, count(n))), h("td", { class: "num" }, dollars(row.cost))))))));
}

function costSection(among) {
  const pick = (kind, text) => h("button", { type: "button", id: `by-${kind}`, "aria-pressed": String(state.cost === kind), onclick: () => {
    state.cost = kind;
    draw(`by-${kind}`);
  } }, text);
  return section("cost", "Score against what it cost", "Mean score with its 95 % interval.", h("p", { class: "buttons" }, pick("tokens", "Tokens"), pick("cost", "Dollars")), costFigure(among, state.cost));
}
