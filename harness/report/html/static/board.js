// The leaderboard: every run with its numbers, and each against a baseline.

const COLUMNS = [
  { key: "name", name: "Run", text: true, value: (run) => run.name },
  { key: "score", name: "Score, %", value: (run) => (run.score ? run.score.value : null) },
  { key: "n", name: "n", value: (run) => (run.score ? run.score.n : 0) },
  {
    key: "infra",
    name: "Infra",
    title: "tasks lost to infrastructure failures: not in n",
    value: (run) => run.infra_failures.length,
  },
  {
    key: "change",
    name: "Δ points",
    title: "paired difference to the baseline on common tasks, with its 95 % bootstrap interval",
    value: (run) => versus(run).change,
  },
  {
    key: "holm",
    name: "p (Holm)",
    title:
      "exact McNemar, or a sign-flip permutation for graded scores; in brackets adjusted over all runs compared with this baseline",
    value: (run) => versus(run).holm,
  },
  {
    key: "tokens",
    name: "Tokens",
    title: "the method's own: input + output",
    value: (run) => (run.tokens ? run.tokens.method : null),
  },
  {
    key: "judge",
    name: "Judge",
    title: "tokens of the benchmark's own judge",
    value: (run) => (run.tokens ? run.tokens.judge : null),
  },
  {
    key: "embeddings",
    name: "Embed.",
    title: "tokens of embedding calls",
    value: (run) => (run.tokens ? run.tokens.embeddings : null),
  },
  {
    key: "cost",
    name: "Cost",
    title: "US dollars of all committed calls; – where a price is not known",
    value: (run) => run.cost,
  },
];

const versus = (run) => (baseOf(run) && data.versus[baseOf(run).id][run.id]) || {};

/** What a run is compared with: the baseline, or where that differs in more than the method (in the seed, say) its like. */
function baseOf(run) {
  const base = baseline();
  if (!base || run.labels.method === base.labels.method) return base;
  const fits = (one) => one !== run && data.versus[one.id][run.id].why === undefined;
  if (fits(base)) return base;
  return (
    selected().find(
      (one) => one.labels.method === base.labels.method && one.labels.variant === base.labels.variant && fits(one),
    ) || base
  );
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
    return h(
      "th",
      { scope: "col", "aria-sort": sort, class: one.text ? "" : "num" },
      h(
        "button",
        { type: "button", class: "sort", id: `sort-${one.key}`, title: one.title, onclick: click },
        one.name,
        h("span", { class: "arrow", "aria-hidden": "true" }, sign),
      ),
    );
  });
  const table = h(
    "table",
    { class: "board" },
    h("caption", { class: "hidden" }, "Leaderboard"),
    h("thead", {}, h("tr", {}, head)),
    h("tbody", {}, sorted.map(boardRow)),
  );
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Leaderboard" }, table);
}

function boardRow(run) {
  const base = baseline();
  const cell = (name, ...content) => h("td", { class: "num", "data-name": name }, content);
  const score = run.score;
  return h(
    "tr",
    { class: run === base ? "baseline" : "" },
    h(
      "th",
      { scope: "row" },
      h("a", { href: runAddress(run.id) }, run.name),
      " ",
      run === base && h("span", { class: "tag" }, "baseline"),
      " ",
      scriptedMark(run),
      " ",
      run.status !== "finished" && h("span", { class: "tag warn" }, "incomplete"),
      " ",
      run.departures.length
        ? h("a", { class: "tag warn", href: "#notes", title: run.departures.join("; "), onclick: toNotes }, "≠")
        : null,
    ),
    cell(
      "Score, %",
      score
        ? [
            scoreBar(score),
            h("span", { class: "value" }, percent(score.value)),
            " ",
            h("span", { class: "interval" }, range(score.interval, 100)),
          ]
        : NOTHING,
    ),
    cell("n", score ? score.n : 0),
    cell("Infra", run.infra_failures.length ? `+${run.infra_failures.length}` : "0"),
    ...versusCells(run, base, cell),
    cell(
      "Tokens",
      run.tokens ? [short(run.tokens.method), run.tokens.estimated && h("span", { class: "interval" }, " est.")] : NOTHING,
    ),
    cell("Judge", run.tokens ? short(run.tokens.judge) : NOTHING),
    cell("Embed.", run.tokens ? short(run.tokens.embeddings) : NOTHING),
    cell("Cost", dollars(run.cost)),
  );
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
    cell(
      "Δ points",
      h("span", { class: clear ? "clear" : "" }, signed(found.change)),
      " ",
      h("span", { class: "interval" }, range(found.interval, 1)),
      found.pairs !== run.score.n && h("span", { class: "interval" }, ` ${plural(found.pairs, "pair")}`),
      baseOf(run) !== base && h("span", { class: "interval against" }, `vs ${baseOf(run).name}`),
    ),
    cell(
      "p (Holm)",
      h(
        "span",
        { title: `${found.test}: better on ${found.better}, worse on ${found.worse} of ${found.pairs}` },
        pvalue(found.p),
        " (",
        h("span", { class: clear ? "clear" : "" }, pvalue(found.holm)),
        ")",
      ),
    ),
  ];
}

function scoreBar(score) {
  const interval = score.interval || [score.value, score.value];
  return s(
    "svg",
    { class: "score", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "track", x: 0, y: 5, width: 100, height: 2 }),
    s("rect", { class: "span", x: 100 * interval[0], y: 4, width: Math.max(100 * (interval[1] - interval[0]), 0.5), height: 4 }),
    s("rect", { class: "at", x: Math.min(100 * score.value, 98.4), y: 0, width: 1.6, height: 12 }),
  );
}

/** Why runs cannot be set against a paper's number, and what else their reader must know; once for all whom it concerns. */
function footnotes(among) {
  const said = new Map();
  const add = (sign, text, run) => {
    const key = `${sign} ${text}`.trim();
    said.set(key, [...(said.get(key) || []), run.name]);
  };
  for (const run of among) {
    run.departures.forEach((text) => add("≠", text, run));
    run.caveats.forEach((text) => add("", text, run));
    const why = versus(run).why;
    if (why) add("Δ", `not compared with ${baseline().name}: ${why.join("; ")}`, run);
  }
  const lines = [...said].map(([text, names]) =>
    h(
      "li",
      {},
      text,
      names.length === among.length && among.length > 1
        ? h("span", { class: "who" }, " (all runs)")
        : h("span", { class: "who" }, ` (${names.join(", ")})`),
    ),
  );
  return h(
    "details",
    { class: "notes", id: "notes", open: lines.length <= 8 },
    h("summary", {}, "How to read this", lines.length ? ` · ${plural(lines.length, "note")}` : ""),
    h(
      "p",
      {},
      "Score: mean with its 95 % interval (Wilson for 0/1 scores, else bootstrap). Δ: against the baseline on the tasks that both have, paired bootstrap. p: exact McNemar, or a sign-flip permutation where scores are graded; in brackets after Holm's adjustment. Bold: below 0.05 after it. – is not known; ≠ must not be compared with a paper's number. est.: tokens counted here, not stated by the provider.",
    ),
    lines.length ? h("ul", {}, lines) : null,
  );
}
