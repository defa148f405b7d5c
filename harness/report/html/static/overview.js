// Results: the leaderboard, and the figures that go with it.

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
    section(
      "curves",
      "Learning curves",
      "Mean score of consecutive blocks of tasks over the position in the stream, with 95 % intervals. The dashed grey line is the baseline, where the two may be compared. The benchmark's own order of tasks is part of a trend.",
      h(
        "div",
        { class: "multiples" },
        sorted.map((run) =>
          h(
            "figure",
            {},
            h("figcaption", {}, h("a", { href: runAddress(run.id) }, run.name), " ", scriptedMark(run)),
            curveFigure(run, versus(run).why ? null : baseOf(run)),
            trendLine(run),
          ),
        ),
      ),
    ),
    section(
      "tokens",
      "Tokens by phase and role",
      "The method's own tokens a task, input and output.",
      legend(sorted),
      tokenFigure(sorted),
      roleTable(sorted),
    ),
    costSection(sorted),
  );
  return place;
}

const section = (id, title, text, ...content) =>
  h(
    "section",
    { "aria-labelledby": `h-${id}` },
    h("h2", { id: `h-${id}` }, title),
    text && h("p", { class: "note" }, text),
    content,
  );

function controls() {
  const choices = Object.keys(state.filter).map((key) => {
    const values = [...new Set(data.runs.map((run) => run.labels[key]))].sort();
    return values.length < 2
      ? null
      : choice(
          `f-${key}`,
          { env: "Environment", host: "Host", method: "Method", models: "Models" }[key],
          state.filter[key],
          [["", "all"], ...values.map((v) => [v, v])],
          (v) => {
            state.filter[key] = v;
            draw();
          },
        );
  });
  const base = baseline();
  const bases = selected().map((run) => [run.id, run.name]);
  return h(
    "form",
    { class: "controls", onsubmit: (event) => event.preventDefault() },
    choices,
    bases.length > 1 &&
      choice("baseline", "Baseline", base.id, bases, (v) => {
        state.baseline = v;
        draw();
      }),
    h(
      "span",
      { class: "phone" },
      choice(
        "sort",
        "Sort by",
        state.sort.key,
        COLUMNS.map((one) => [one.key, one.name]),
        (v) => {
          sortBy(v);
          draw();
        },
      ),
    ),
  );
}

function choice(id, label, value, options, changed) {
  const list = h(
    "select",
    { id, onchange: (event) => changed(event.target.value) },
    options.map(([v, text]) => h("option", { value: v, selected: v === value }, text)),
  );
  return h("label", { class: "choice", for: id }, h("span", {}, label), list);
}

/** Said before any number, because a scripted run looks like any other. */
function scriptedNote(among) {
  const names = among.filter((run) => run.scripted).map((run) => run.name);
  if (!names.length) return null;
  const which = names.length === among.length ? "All of these runs are scripted" : `Scripted: ${names.join(", ")}`;
  return h(
    "p",
    { class: "box scripted-note" },
    `${which}. A script gave the answers, no model: they show that the parts work, and measure no model.`,
  );
}

function trendLine(run) {
  const found = run.trend;
  const text = found
    ? `trend ${signed(100 * found.slope)} points a 100 tasks ${range(found.interval, 100)}, ${equals(found.p)}`
    : "trend –";
  return h("p", { class: "note" }, text);
}

const legend = (among) =>
  h(
    "ul",
    { class: "legend" },
    PHASES.filter((phase) => among.some((run) => run.usage.some((row) => row.part === "method" && row.phase === phase))).map(
      (phase) =>
        h(
          "li",
          {},
          s(
            "svg",
            { viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" },
            s("rect", { class: `phase ${phase}`, width: 12, height: 12, rx: 2 }),
          ),
          phase,
        ),
    ),
  );

function roleTable(among) {
  const rows = among.flatMap((run) => run.usage.map((row) => ({ run, ...row })));
  const head = ["Run", "Role", "Phase", "Calls", "Input", "Cached", "Output", "Reasoning", "Cost"];
  return h(
    "details",
    {},
    h("summary", {}, "All numbers, by role and phase"),
    h(
      "div",
      { class: "scroll", tabindex: "0" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            head.map((name, n) => h("th", { scope: "col", class: n > 2 ? "num" : "" }, name)),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row) =>
            h(
              "tr",
              {},
              h("td", {}, row.run.name),
              h("td", {}, row.role, row.part === "method" ? null : h("span", { class: "tag" }, row.part)),
              h("td", {}, row.phase),
              [row.calls, row.input, row.cached, row.output, row.reasoning].map((n) => h("td", { class: "num" }, count(n))),
              h("td", { class: "num" }, dollars(row.cost)),
            ),
          ),
        ),
      ),
    ),
  );
}

function costSection(among) {
  const pick = (kind, text) =>
    h(
      "button",
      {
        type: "button",
        id: `by-${kind}`,
        "aria-pressed": String(state.cost === kind),
        onclick: () => {
          state.cost = kind;
          draw(`by-${kind}`);
        },
      },
      text,
    );
  return section(
    "cost",
    "Score against what it cost",
    "Mean score with its 95 % interval.",
    h("p", { class: "buttons" }, pick("tokens", "Tokens"), pick("cost", "Dollars")),
    costFigure(among, state.cost),
  );
}
