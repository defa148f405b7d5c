// One task of one run: what was asked, what memory was read, the plan, who said what, and what the memory became.

async function taskView(run, task) {
  const found = await transcript(run, task.id);
  const address = (id) => taskAddress(run.id, id);
  const others = [...runs.values()].filter((one) => one !== run && outcome(one, task.id) !== "none");
  const body = h("div", { class: "main-column" }, taskHead(run, task, found, address, others));
  if (!found) body.append(h("p", { class: "empty" }, `${run.name} has no transcript of this task.`));
  else body.append(...taskBody(found));
  return h("div", { class: "split" }, taskList([run], address, task.id), body);
}

function taskHead(run, task, found, address, others) {
  const result = run.results[task.id];
  const facts = result
    ? [
        `score ${percent(result.score)}`,
        result.status,
        plural(result.steps, "step"),
        `${count(result.tokens)} tokens`,
        dollars(result.cost),
        `task ${result.position + 1} of ${run.planned} in the stream`,
        result.late && "played late",
      ].filter(Boolean)
    : [`no result: ${OUTCOMES[outcome(run, task.id)].word}`];
  const compare = others.length
    ? choice(
        "with",
        "Compare with",
        "",
        [["", "…"], ...others.map((one) => [one.id, `${OUTCOMES[outcome(one, task.id)].sign} ${one.name}`])],
        (other) => other && (location.hash = compareAddress(run.id, other, task.id)),
      )
    : null;
  return h(
    "header",
    { class: "task-head" },
    h(
      "p",
      { class: "crumbs" },
      h("a", { href: runAddress(run.id) }, run.name),
      " ",
      scriptedMark(run),
      h("span", { class: "grow" }),
      stepper(address, task, [run]),
    ),
    h("h1", {}, badge(run, task.id), " ", goalOf(task)),
    h("p", { class: "note id" }, task.id),
    h(
      "p",
      { class: "facts-line" },
      facts.map((text) => h("span", {}, text)),
    ),
    compare,
  );
}

/** Links to the tasks before and after, of those that fit the search. */
function stepper(address, task, among) {
  const { before, after } = neighbours(task.id, among);
  const link = (other, text, label) =>
    other
      ? h("a", { class: "button", href: address(other.id), "aria-label": label, title: label }, text)
      : h("span", { class: "button off", "aria-hidden": "true" }, text);
  return h("span", { class: "stepper" }, link(before, "↑", "task before (k)"), link(after, "↓", "next task (j)"));
}

function neighbours(id, among) {
  const found = matching(among);
  const at = found.findIndex((task) => task.id === id);
  return at < 0 ? { after: found[0] } : { before: found[at - 1], after: found[at + 1] };
}

function taskBody(found) {
  const calls = found.items.filter((item) => item.t === "call");
  const changes = found.items.filter((item) => item.t === "memory_note" && item.kind === "memory_change");
  return [
    attemptsNote(found),
    memorySection(found),
    graphSection(found),
    section(
      "transcript",
      "Transcript",
      null,
      h("div", { class: "opening" }, found.opening ? prose(found.opening, "observation") : null),
      h("ol", { class: "turns" }, turns(found.items).map(turnBlock)),
      resultBlock(found.result),
    ),
    changesSection(changes),
    callsSection(calls),
  ].filter(Boolean);
}

function attemptsNote(found) {
  const lost = found.attempts.filter((one) => one.kind !== "committed");
  if (!lost.length) return null;
  return h(
    "div",
    { class: "box warn" },
    h("p", {}, `${plural(lost.length, "attempt")} left no result; what it cost is in no other number here:`),
    h(
      "ul",
      {},
      lost.map((one) =>
        h(
          "li",
          {},
          `attempt ${one.number}: ${one.kind.replace("_", " ")}, ${plural(one.calls, "call")}, ${count(one.input_tokens + one.output_tokens)} tokens, ${dollars(one.cost_usd)}. `,
          one.error,
        ),
      ),
    ),
  );
}

function resultBlock(result) {
  if (!result) return h("p", { class: "result" }, "No result.");
  const metrics = Object.entries(result.metrics).map(
    ([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`,
  );
  return h(
    "div",
    { class: "result" },
    h(
      "p",
      {},
      h("strong", {}, `Score ${percent(result.score)}`),
      ` · ${result.status}${result.kind === "agent_failure" ? " · agent failure, scored 0" : ""}`,
    ),
    result.feedback && prose(result.feedback),
    result.error && h("p", { class: "error" }, result.error),
    metrics.length ? h("p", { class: "note" }, metrics.join(" · ")) : null,
  );
}

// --- memory ----------------------------------------------------------------------------------------------------------
function memorySection(found) {
  const memory = found.memory;
  const parts = [];
  if (memory) {
    for (const card of memory.cards || [])
      parts.push(
        lazy(`Past task: ${clip(card.task, 90)}`, () =>
          h(
            "div",
            {},
            prose(card.task),
            card.key_steps && [h("h3", {}, "Key steps"), prose(card.key_steps)],
            h("h3", {}, "Trajectory"),
            prose(card.trajectory),
          ),
        ),
      );
    for (const [role, rules] of Object.entries(memory.insights || {}))
      parts.push(
        h(
          "div",
          {},
          h("h3", {}, role === "*" ? "Insights" : `Insights for ${role}`),
          h(
            "ul",
            {},
            rules.map((rule) => h("li", {}, rule)),
          ),
        ),
      );
    for (const text of memory.procedures || [])
      parts.push(
        lazy(
          `Procedure: ${clip(text.split("\n")[0].replace(/^Procedure:\s*/, ""), 90)}`,
          () => prose(text),
          memory.procedures.length === 1,
        ),
      );
    if (memory.brief) parts.push(lazy("Briefing", () => prose(memory.brief)));
  } else if (found.titles.length)
    parts.push(
      h("p", { class: "note" }, "This run noted only what the past tasks were that it read; their text stands in the prompts."),
      h(
        "ul",
        {},
        found.titles.map((title) => h("li", {}, title)),
      ),
    );
  return section(
    "memory",
    "Memory read",
    null,
    parts.length
      ? h("div", { class: "stack" }, parts)
      : h(
          "p",
          { class: "empty" },
          memory
            ? "The memory gave nothing at the start of this task."
            : "The log of this run does not say what the memory gave; it stands in the prompts.",
        ),
  );
}

function changesSection(changes) {
  if (!changes.length) return null;
  const signs = { added: "+", changed: "~", removed: "−" };
  return section(
    "became",
    "What the memory became",
    null,
    h(
      "div",
      { class: "stack" },
      changes.map((one) => {
        const title = [
          h("span", { class: "sign" }, signs[one.change] || "·"),
          ` ${one.item} ${one.change}`,
          one.why ? `: ${one.why}` : "",
        ];
        if (!one.before && !one.after) return h("p", { class: "aside" }, title);
        return lazy(title, () => diffBlock(one.before, one.after), one.change === "changed");
      }),
    ),
  );
}

// --- calls -----------------------------------------------------------------------------------------------------------
function callsSection(calls) {
  if (!calls.length) return null;
  const head = ["#", "Step", "Agent", "Role", "Phase", "Model", "In", "Cached", "Out", "Reasoning", "Cost", "Seconds"];
  const make = () =>
    h(
      "div",
      { class: "scroll", tabindex: "0" },
      h(
        "table",
        { class: "calls" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            head.map((name, n) => h("th", { scope: "col", class: n < 2 || n > 5 ? "num" : "" }, name)),
          ),
        ),
        h(
          "tbody",
          {},
          calls.map((call, n) =>
            h(
              "tr",
              { class: call.error ? "bad" : "" },
              [n + 1, call.step].map((v) => h("td", { class: "num" }, v)),
              [call.agent || NOTHING, call.role, call.phase, call.model].map((v) => h("td", {}, v)),
              call.usage.map((v) => h("td", { class: "num" }, call.source ? count(v) : NOTHING)),
              h("td", { class: "num" }, dollars(call.cost)),
              h("td", { class: "num" }, fixed(call.s, 2)),
            ),
          ),
        ),
      ),
    );
  const sum = (n) => calls.reduce((total, call) => total + call.usage[n], 0);
  return section(
    "calls",
    "Model calls",
    null,
    lazy(`${plural(calls.length, "call")}, ${count(sum(IN))} tokens in, ${count(sum(OUT))} out`, make),
  );
}
