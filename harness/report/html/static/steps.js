// Parts of a transcript: texts, prompts, model calls, steps, the memory's notes, diffs.

const LONG = 4000; // characters of a text that are shown at once

/** Untrusted text as text; a long one in part, the rest on demand. */
function prose(text, kind = "") {
  const whole = String(text);
  if (whole.length <= LONG) return h("pre", { class: kind, tabindex: kind === "prompt" ? "0" : null }, whole);
  const box = h("pre", { class: kind }, whole.slice(0, LONG));
  const more = h(
    "button",
    {
      type: "button",
      class: "more",
      onclick: () => {
        box.textContent = whole;
        more.remove();
      },
    },
    `Show all ${count(whole.length)} characters`,
  );
  return h("div", {}, box, more);
}

/** Details whose content is made when they are first opened. */
function lazy(title, make, open) {
  const box = h("details", { class: "lazy" }, h("summary", {}, title));
  const show = () => box.childElementCount === 1 && box.append(make());
  box.addEventListener("toggle", () => box.open && show());
  if (open) {
    box.open = true;
    show();
  }
  return box;
}

const [IN, CACHED, OUT, REASONING] = [0, 1, 2, 3];

function usageText(call) {
  const parts = [`${short(call.usage[IN])} in`, `${short(call.usage[OUT])} out`];
  if (call.usage[CACHED]) parts.push(`${short(call.usage[CACHED])} cached`);
  if (call.usage[REASONING]) parts.push(`${short(call.usage[REASONING])} reasoning`);
  if (!call.source) return "no usage";
  return parts.join(" · ") + (call.source === "provider" ? "" : " (est.)");
}

function callBlock(call) {
  const tags = [
    call.retry && `try ${call.retry}`,
    call.replayed && "replayed",
    call.constrained && "held to the admissible actions",
    call.finish && `finish: ${call.finish}`,
  ].filter(Boolean);
  return h(
    "div",
    { class: `call ${call.phase || ""}` },
    h(
      "div",
      { class: "call-head" },
      h("span", { class: "who" }, call.agent || "–"),
      h("span", { class: "role" }, call.role),
      h("span", { class: "tag" }, call.phase || ""),
      tags.map((tag) => h("span", { class: "tag warn" }, tag)),
      h("span", { class: "usage" }, usageText(call)),
    ),
    call.text !== undefined && prose(call.text, "said"),
    call.error && h("p", { class: "error" }, call.error),
    call.prompt
      ? lazy(`Prompt (${plural(call.prompt.length, "message")})`, () =>
          h(
            "div",
            {},
            call.prompt.map(([speaker, text]) =>
              h("div", { class: "message" }, h("div", { class: "speaker" }, speaker), prose(text, "prompt")),
            ),
          ),
        )
      : null,
  );
}

/** Embedding calls in a row are one line: their texts stand in other calls too. */
function embedLine(calls) {
  const tokens = calls.reduce((sum, call) => sum + call.usage[IN], 0);
  const roles = [...new Set(calls.map((call) => call.role))].join(", ");
  return h("p", { class: "aside" }, `${plural(calls.length, "embedding call")} · ${roles} · ${short(tokens)} tokens`);
}

function stepBlock(step, rehearsed) {
  return h(
    "div",
    { class: `step${step.error ? " bad" : ""}`, id: rehearsed ? null : `step-${step.step}` },
    h(
      "div",
      { class: "deed" },
      h("span", { class: "number" }, step.step),
      h("span", { class: "who" }, step.agent),
      h("div", { class: "action" }, prose(step.action, "command")),
    ),
    h(
      "div",
      { class: "came" },
      prose(step.observation === "" ? "(nothing)" : step.observation, "observation"),
      step.error && h("p", { class: "error" }, step.error),
      step.done && h("span", { class: "tag" }, "episode over"),
      step.reward ? h("span", { class: "tag" }, `reward ${step.reward}`) : null,
    ),
  );
}

function noteLine(note) {
  if (note.kind === "divergence") {
    const parts = (note.reasons || []).map(
      (reason) =>
        reason +
        (reason === "goal"
          ? ` ${fixed(note.goal, 2)}`
          : reason === "plan"
            ? ` ${fixed(note.plan, 2)}`
            : ` ${(note.conflicts || []).join(", ")}`),
    );
    return h("p", { class: "aligned divergence" }, h("strong", {}, "Divergence "), `${note.agent}: ${parts.join("; ")}`);
  }
  if (note.kind === "correction")
    return h(
      "p",
      { class: "aligned correction" },
      h("strong", {}, "Correction "),
      `to ${note.agent}: `,
      h("span", { class: "words" }, note.text),
    );
  return genericItem(note);
}

function genericItem(item) {
  const { t, kind, ...rest } = item;
  return lazy(`${t}${kind ? `: ${kind}` : ""}`, () => prose(JSON.stringify(rest, null, 1)));
}

/** The items as turns: what led to a step, and the step; the last one may have no step. */
function turns(items) {
  const found = [];
  let current = { before: [], step: null };
  for (const item of items) {
    if (item.t === "step") {
      found.push({ ...current, step: item });
      current = { before: [], step: null };
    } else if (!(item.t === "memory_note" && ["graph", "graph_status", "memory_change"].includes(item.kind)))
      current.before.push(item);
  }
  if (current.before.length) found.push(current);
  return found;
}

function itemBlocks(items) {
  const found = [];
  let embeds = [],
    rehearsal = [];
  const flush = () => {
    if (embeds.length) found.push(embedLine(embeds));
    if (rehearsal.length) {
      const held = rehearsal;
      found.push(
        lazy(`Rehearsal in a fresh world (${plural(held.filter((one) => one.t === "rehearsal_step").length, "step")})`, () =>
          h(
            "div",
            { class: "rehearsal" },
            held.map((one) =>
              one.t === "rehearsal_step" ? stepBlock(one, true) : one.t === "call" ? callBlock(one) : genericItem(one),
            ),
          ),
        ),
      );
    }
    embeds = [];
    rehearsal = [];
  };
  for (const item of items) {
    const rehearsed = item.t.startsWith("rehearsal") || (item.t === "call" && item.phase === "validate");
    if (item.t === "call" && item.embeds !== undefined && !item.error) {
      if (rehearsal.length) flush();
      embeds.push(item);
    } else if (rehearsed) {
      if (embeds.length) flush();
      rehearsal.push(item);
    } else {
      flush();
      found.push(item.t === "call" ? callBlock(item) : item.t === "memory_note" ? noteLine(item) : genericItem(item));
    }
  }
  flush();
  return found;
}

function turnBlock(turn) {
  return h("li", { class: "turn" }, itemBlocks(turn.before), turn.step && stepBlock(turn.step));
}

// --- diffs -----------------------------------------------------------------------------------------------------------
const MOST_CELLS = 4e6;

/** Lines as [sign, text]: " " kept, "-" gone, "+" new; by the longest common subsequence. */
function diffLines(before, after) {
  const a = before === "" ? [] : before.split("\n"),
    b = after === "" ? [] : after.split("\n");
  if (a.length * b.length > MOST_CELLS) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  const table = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  const found = [];
  let i = 0,
    j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) found.push([" ", a[i++], j++]);
    else if (i < a.length && (j >= b.length || table[i + 1][j] >= table[i][j + 1])) found.push(["-", a[i++]]);
    else found.push(["+", b[j++]]);
  }
  return found;
}

function diffBlock(before, after) {
  const names = { "+": "ins", "-": "del", " ": "same" };
  return h(
    "div",
    { class: "diff" },
    diffLines(before || "", after || "").map(([sign, line]) =>
      h("div", { class: names[sign] }, h("span", { class: "sign" }, sign), h("span", {}, line)),
    ),
  );
}
