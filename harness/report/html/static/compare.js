// The same task under two runs, step by step, side by side.

async function compareView(run, other, task) {
  const [left, right] = await Promise.all([transcript(run, task.id), transcript(other, task.id)]);
  const address = (id) => compareAddress(run.id, other.id, id);
  const head = h(
    "header",
    { class: "task-head" },
    h(
      "p",
      { class: "crumbs" },
      h("a", { href: taskAddress(run.id, task.id) }, "Back to one run"),
      h("span", { class: "grow" }),
      stepper(address, task, [run, other]),
    ),
    h("h1", {}, goalOf(task)),
    h("p", { class: "note id" }, task.id),
  );
  const sides = [
    [run, left],
    [other, right],
  ];
  const tops = sides.map(([one, found]) =>
    h(
      "div",
      { class: "side-head" },
      h("h2", {}, badge(one, task.id), " ", h("a", { href: taskAddress(one.id, task.id) }, one.name), " ", scriptedMark(one)),
      h(
        "p",
        { class: "facts-line" },
        sideFacts(one, task, found).map((text) => h("span", {}, text)),
      ),
    ),
  );
  const columns = sides.map(([, found]) => (found ? turns(found.items) : []));
  const rows = Math.max(...columns.map((column) => column.length));
  const pairs = [];
  for (let n = 0; n < rows; n++)
    pairs.push(
      h(
        "li",
        { class: `pair${differ(columns[0][n], columns[1][n]) ? " differ" : ""}` },
        columns.map((column, side) =>
          h(
            "div",
            { class: "half", "data-run": sides[side][0].name },
            column[n] ? compactTurn(column[n]) : h("p", { class: "empty" }, NOTHING),
          ),
        ),
      ),
    );
  const memories = h(
    "div",
    { class: "pair" },
    sides.map(([one, found]) =>
      h(
        "div",
        { class: "half", "data-run": one.name },
        found ? memorySection(found) : h("p", { class: "empty" }, "No transcript."),
      ),
    ),
  );
  memories
    .querySelectorAll("section")
    .forEach((part) => (part.removeAttribute("aria-labelledby"), part.querySelector("h2").removeAttribute("id")));
  return h(
    "div",
    { class: "split" },
    taskList([run, other], address, task.id),
    h(
      "div",
      { class: "main-column" },
      head,
      h("div", { class: "pair heads" }, tops),
      memories,
      h(
        "section",
        { "aria-labelledby": "h-steps" },
        h("h2", { id: "h-steps" }, "Step by step"),
        h("ol", { class: "pairs" }, pairs),
      ),
    ),
  );
}

function sideFacts(run, task, found) {
  const result = run.results[task.id];
  if (!result) return ["no result"];
  const calls = found ? found.items.filter((item) => item.t === "call" && item.embeds === undefined).length : null;
  return [
    `score ${percent(result.score)}`,
    plural(result.steps, "step"),
    calls !== null && plural(calls, "call"),
    `${count(result.tokens)} tokens`,
    dollars(result.cost),
  ].filter(Boolean);
}

const differ = (a, b) => !a || !b || !a.step || !b.step || a.step.action !== b.step.action;

/** The step in sight, what was said before it on demand. */
function compactTurn(turn) {
  const notes = turn.before.filter((item) => item.t === "memory_note").map(noteLine);
  const rest = turn.before.filter((item) => item.t !== "memory_note");
  const calls = rest.filter((item) => item.t === "call").length;
  return [
    notes,
    rest.length
      ? lazy(calls ? plural(calls, "model call") : plural(rest.length, "event"), () => h("div", {}, itemBlocks(rest)))
      : null,
    turn.step && stepBlock(turn.step, true),
  ];
}
