// Tasks: search and filter, all of them against all runs, and the list beside an open task.

function searchForm(changed, among = selected()) {
  const values = (key) => [...new Set(data.tasks.map((task) => task[key]).filter(Boolean))].sort();
  const families = values("family"),
    groups = values("group");
  const same = families.length === groups.length && families.every((name, n) => name === groups[n]);
  const search = h("input", {
    id: "search",
    type: "search",
    value: state.query,
    placeholder: "Search tasks",
    autocomplete: "off",
    spellcheck: "false",
    oninput: (event) => {
      state.query = event.target.value;
      changed();
    },
  });
  const pick = (key, label, options) =>
    options.length > 1 &&
    choice(`t-${key}`, label, state[key], [["", "all"], ...options], (value) => {
      state[key] = value;
      changed();
    });
  const outcomes = Object.entries(OUTCOMES).filter(
    ([kind]) => kind !== "none" && data.tasks.some((task) => among.some((run) => outcome(run, task.id) === kind)),
  );
  return h(
    "form",
    { class: "controls", role: "search", onsubmit: (event) => event.preventDefault() },
    h("label", { class: "choice wide", for: "search" }, h("span", {}, "Search"), search),
    pick(
      "family",
      "Family",
      families.map((v) => [v, v]),
    ),
    !same &&
      pick(
        "group",
        "Group",
        groups.map((v) => [v, v]),
      ),
    pick(
      "outcome",
      among.length > 1 ? "Outcome in any run" : "Outcome",
      outcomes.map(([kind, { sign, word }]) => [kind, `${sign} ${word}`]),
    ),
  );
}

function tasksView() {
  const holder = h("div", { class: "found" });
  const show = () => {
    state.rows = 200;
    holder.replaceChildren(matrix());
  };
  holder.append(matrix());
  return h("div", { class: "page" }, h("h1", {}, "Tasks"), searchForm(show), holder);
}

function matrix() {
  const among = selected();
  const found = matching();
  const shown = found.slice(0, state.rows);
  say(plural(found.length, "task"));
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, plural(found.length, "task")),
    among.map((run) =>
      h(
        "th",
        { scope: "col", class: "tilt" },
        h("a", { href: runAddress(run.id) }, run.name),
        run.scripted ? h("span", { class: "hidden" }, " (scripted)") : null,
      ),
    ),
  );
  const rows = shown.map((task) =>
    h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        h(
          "a",
          { class: "row-link", href: taskAddress(firstRun(task, among), task.id) },
          h("span", { class: "goal" }, goalOf(task)),
          h("span", { class: "id" }, task.id),
        ),
      ),
      among.map((run) =>
        h(
          "td",
          { class: "cell" },
          outcome(run, task.id) === "none"
            ? badge(run, task.id)
            : h(
                "a",
                { href: taskAddress(run.id, task.id) },
                h("span", { class: "hidden" }, `${run.name}: `),
                badge(run, task.id),
              ),
        ),
      ),
    ),
  );
  const more =
    found.length > shown.length &&
    h(
      "p",
      {},
      h(
        "button",
        {
          type: "button",
          onclick: (event) => {
            state.rows += 500;
            event.target.closest(".found").replaceChildren(matrix());
          },
        },
        `Show more (${count(found.length - shown.length)} left)`,
      ),
    );
  return h(
    "div",
    {},
    key(among),
    found.length
      ? h(
          "div",
          { class: "scroll", tabindex: "0", role: "region", "aria-label": "Outcomes" },
          h("table", { class: "matrix" }, h("thead", {}, head), h("tbody", {}, rows)),
        )
      : h("p", { class: "empty" }, "No task fits."),
    more,
  );
}

const key = (among) =>
  h(
    "ul",
    { class: "legend" },
    Object.entries(OUTCOMES)
      .filter(([kind]) => data.tasks.some((task) => among.some((run) => outcome(run, task.id) === kind)))
      .map(([kind, { sign, word }]) => h("li", {}, h("span", { class: `mark ${kind}`, "aria-hidden": "true" }, sign), word)),
  );

const firstRun = (task, among) => (among.find((run) => outcome(run, task.id) !== "none") || among[0] || data.runs[0]).id;

/** The list beside an open task. `address` makes a task's link; `current` is the open one. */
function taskList(among, address, current) {
  const list = h("ol", { class: "list" });
  const show = () => {
    const found = matching(among);
    const at = Math.max(
      0,
      found.findIndex((task) => task.id === current),
    );
    const from = Math.max(0, at - state.rows / 2); // a window: a stream may have ten thousand tasks
    list.replaceChildren(
      ...found.slice(from, from + state.rows).map((task) =>
        h(
          "li",
          {},
          h(
            "a",
            { class: "row-link", href: address(task.id), "aria-current": task.id === current ? "page" : null },
            h(
              "span",
              { class: "marks" },
              among.map((run) => badge(run, task.id)),
            ),
            h("span", { class: "goal" }, goalOf(task)),
            h("span", { class: "id" }, task.id),
          ),
        ),
      ),
    );
    say(plural(found.length, "task"));
  };
  show();
  const wide = matchMedia("(min-width: 900px)").matches;
  return h(
    "details",
    { class: "side", open: wide },
    h("summary", {}, "Tasks"),
    searchForm(show, among),
    h("nav", { "aria-label": "Tasks" }, list),
  );
}

/** A run: what it is, its families, its tasks in stream order. */
function runView(run) {
  const rows = Object.entries(run.results).sort((a, b) => a[1].position - b[1].position);
  const lost = Object.keys(run.transcripts).filter((task) => !run.results[task]);
  const facts = [
    ["Host", run.labels.host],
    ["Method", run.labels.method],
    ["Environment", run.labels.env],
    ["Models", run.labels.models_label],
    ["Seed", run.seed],
    ["Order", run.order],
    ["Score", run.score ? `${percent(run.score.value)} ${range(run.score.interval, 100)} n=${run.score.n}` : NOTHING],
    ["Agent failures", run.agent_failures],
    ["Infrastructure failures", run.infra_failures.length],
    [
      "Tokens",
      run.tokens
        ? `${count(run.tokens.method)} method, ${count(run.tokens.judge)} judge, ${count(run.tokens.embeddings)} embeddings`
        : NOTHING,
    ],
    ["Cost", dollars(run.cost)],
    ["Time", known(run.seconds) ? `${count(run.seconds)} s` : NOTHING],
  ];
  const line = (task, result) =>
    h(
      "tr",
      {},
      h("td", { class: "num" }, result ? result.position + 1 : run.transcripts[task] + 1),
      h("td", { class: "cell" }, badge(run, task)),
      h(
        "th",
        { scope: "row" },
        h(
          "a",
          { class: "row-link", href: taskAddress(run.id, task) },
          h("span", { class: "goal" }, goalOf(tasks.get(task))),
          h("span", { class: "id" }, task),
        ),
      ),
      h("td", { class: "num" }, result ? result.steps : NOTHING),
      h("td", { class: "num" }, result ? short(result.tokens) : NOTHING),
      h("td", { class: "num" }, result ? dollars(result.cost) : NOTHING),
    );
  return h(
    "div",
    { class: "page" },
    h("h1", {}, run.name, " ", scriptedMark(run)),
    h("p", { class: "note" }, run.id),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
    run.departures.length || run.caveats.length
      ? h(
          "ul",
          { class: "notes" },
          run.departures.map((text) => h("li", {}, "≠ ", text)),
          run.caveats.map((text) => h("li", {}, text)),
        )
      : null,
    section(
      "families",
      "Families",
      null,
      h(
        "div",
        { class: "scroll", tabindex: "0" },
        h(
          "table",
          { class: "board" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["Family", "Score, %", "n"].map((name, n) => h("th", { scope: "col", class: n ? "num" : "" }, name)),
            ),
          ),
          h(
            "tbody",
            {},
            run.families.map((one) =>
              h(
                "tr",
                {},
                h("th", { scope: "row" }, one.name),
                h(
                  "td",
                  { class: "num" },
                  scoreBar({ value: one.mean, interval: one.interval }),
                  h("span", { class: "value" }, percent(one.mean)),
                  " ",
                  h("span", { class: "interval" }, range(one.interval, 100)),
                ),
                h("td", { class: "num" }, one.n),
              ),
            ),
          ),
        ),
      ),
    ),
    section(
      "stream",
      "Tasks in the order of the stream",
      null,
      h(
        "div",
        { class: "scroll", tabindex: "0" },
        h(
          "table",
          { class: "matrix" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["#", "", "Task", "Steps", "Tokens", "Cost"].map((name, n) =>
                h(
                  "th",
                  { scope: "col", class: n === 0 || n > 2 ? "num" : "" },
                  name || h("span", { class: "hidden" }, "Outcome"),
                ),
              ),
            ),
          ),
          h(
            "tbody",
            {},
            rows.map(([task, result]) => line(task, result)),
            lost.map((task) => line(task, null)),
          ),
        ),
      ),
    ),
  );
}
