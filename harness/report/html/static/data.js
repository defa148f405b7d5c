// The summary, what is selected, and the transcripts, unpacked when asked for.

const data = JSON.parse(document.getElementById("summary").textContent);
const runs = new Map(data.runs.map((run, number) => [run.id, { ...run, number }]));
const tasks = new Map(data.tasks.map((task, number) => [task.id, { ...task, number }]));

/** Names of runs as short as they can be while they differ: the method, and what else tells two of a method apart. */
(() => {
  const parts = ["host", "env", "models"].filter((key) => new Set(data.runs.map((run) => run.labels[key])).size > 1);
  const seeds = new Set(data.runs.map((run) => run.seed)).size > 1;
  const orders = new Set(data.runs.map((run) => run.order)).size > 1;
  const taken = new Map();
  for (const run of runs.values()) {
    const more = parts.map((key) => run.labels[key]);
    if (seeds) more.push(`seed ${run.seed}`);
    if (orders && run.order !== "official") more.push(run.order);
    const name = [run.labels.method, ...more].join(" · ");
    const before = taken.get(name) || 0;
    taken.set(name, before + 1);
    run.name = before ? `${name} (${before + 1})` : name;
  }
})();

const state = {
  filter: { env: "", host: "", method: "", models: "" },
  baseline: null,
  sort: { key: "score", down: true },
  query: "",
  family: "",
  group: "",
  outcome: "",
  cost: "tokens",
  rows: 200,
};

const selected = () =>
  [...runs.values()].filter((run) => Object.entries(state.filter).every(([key, value]) => !value || run.labels[key] === value));

/** The baseline that was chosen, else a run without memory, else the first. */
function baseline() {
  const among = selected();
  const chosen = among.find((run) => run.id === state.baseline);
  return chosen || among.find((run) => run.labels.method === "none") || among[0];
}

// --- outcomes --------------------------------------------------------------------------------------------------------
const OUTCOMES = {
  success: { sign: "✓", word: "success" },
  partial: { sign: "◐", word: "partial score" },
  failure: { sign: "✗", word: "not solved" },
  agent: { sign: "!", word: "agent failure" },
  lost: { sign: "∅", word: "infrastructure failure, not scored" },
  open: { sign: "…", word: "in play, or interrupted" },
  none: { sign: "·", word: "not played" },
};

function outcome(run, task) {
  const result = run.results[task];
  if (!result)
    return known(run.transcripts[task]) ? (run.infra_failures.includes(run.transcripts[task]) ? "lost" : "open") : "none";
  if (result.kind === "agent_failure") return "agent";
  if (result.success) return "success";
  return result.score > 0 ? "partial" : "failure";
}

function badge(run, task) {
  const kind = outcome(run, task);
  const result = run.results[task];
  const score = result && kind === "partial" ? ` ${percent(result.score)}` : "";
  return h(
    "span",
    { class: `mark ${kind}`, title: OUTCOMES[kind].word },
    h("span", { "aria-hidden": "true" }, OUTCOMES[kind].sign),
    h("span", { class: "hidden" }, OUTCOMES[kind].word),
    score,
  );
}

const goalOf = (task) =>
  task.goal?.trim() ||
  (task.opening || "")
    .trim()
    .split("\n")
    .filter((line) => line.trim())
    .pop() || task.id;
const scriptedMark = (run) =>
  run.scripted && h("span", { class: "tag scripted", title: "the answers came from a script, not from a model" }, "scripted");

/** The tasks that fit the search, of those that some of these runs has. */
function matching(among = selected()) {
  const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  return [...tasks.values()].filter((task) => {
    if (state.family && task.family !== state.family) return false;
    if (state.group && task.group !== state.group) return false;
    if (!among.some((run) => (state.outcome ? outcome(run, task.id) === state.outcome : outcome(run, task.id) !== "none")))
      return false;
    const text = `${task.id} ${task.family || ""} ${task.group || ""} ${task.goal || ""} ${task.opening || ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

// --- transcripts -----------------------------------------------------------------------------------------------------
const loaded = () =>
  document.readyState === "loading"
    ? new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }))
    : Promise.resolve();

const unpacked = new Map();

/** The transcript of a task in a run, or null where the run has none. */
async function transcript(run, task) {
  const position = run.transcripts[task];
  if (position === undefined) return null;
  const id = `c${run.number}-${position}`;
  if (unpacked.has(id)) return unpacked.get(id);
  if (!document.getElementById(id)) await loaded();
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const found = JSON.parse(await new Response(stream).text());
  restore(found.items);
  if (unpacked.size > 20) unpacked.delete(unpacked.keys().next().value);
  unpacked.set(id, found);
  return found;
}

/** Prompts are written as what they share with the one before, in lines; see texts.py. */
function restore(items) {
  const last = new Map();
  for (const item of items) {
    if (!item.prompt) continue;
    item.prompt = item.prompt.map(([speaker, text], number) => {
      const kind = `${number} ${speaker}`;
      const before = last.get(kind) || [];
      let lines;
      if (typeof text === "string") lines = text.split("\n");
      else {
        const [start, end, middle] = text;
        lines = [...before.slice(0, start), ...(middle === null ? [] : middle.split("\n")), ...(end ? before.slice(-end) : [])];
      }
      last.set(kind, lines);
      return [speaker, lines.join("\n")];
    });
  }
}
