// What is shown follows the address; keys; light and dark.

const main = document.getElementById("main");
let drawing = 0;

/** Draw what the address says. `focus` is the id of a control that keeps the focus. */
async function draw(focus) {
  const mine = ++drawing;
  const where = readAddress();
  const held = focus || (document.activeElement && main.contains(document.activeElement) ? document.activeElement.id : "");
  let view;
  try {
    view = await viewOf(where);
  } catch (error) {
    view = h("div", { class: "page" }, h("h1", {}, "This part of the page is damaged"), h("p", {}, String(error)));
  }
  if (mine !== drawing) return; // another address meanwhile
  main.replaceChildren(view);
  main.setAttribute("data-view", where.view);
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === where.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const current = main.querySelector(".list [aria-current]");
  if (current) current.closest(".list").scrollTop = current.offsetTop - current.closest(".list").clientHeight / 2;
  if (held && document.getElementById(held)) document.getElementById(held).focus({ preventScroll: true });
  const heading = main.querySelector("h1");
  document.title = `${heading ? heading.textContent.trim() : ""} · ${document.getElementById("brand").textContent}`;
}

async function viewOf(where) {
  if (where.view === "overview") return overview();
  if (where.view === "tasks") return tasksView();
  const run = runs.get(where.run),
    task = tasks.get(where.task),
    other = runs.get(where.other);
  const missing = !run
    ? where.run
    : where.task !== undefined && !task
      ? where.task
      : where.view === "compare" && !other
        ? where.other
        : null;
  if (missing !== null)
    return h(
      "div",
      { class: "page" },
      h("h1", {}, "Not in this report"),
      h("p", {}, missing),
      h("p", {}, h("a", { href: "#/" }, "To the results")),
    );
  if (where.view === "run") return runView(run);
  return where.view === "task" ? taskView(run, task) : compareView(run, other, task);
}

addEventListener("hashchange", async () => {
  await draw();
  scrollTo(0, 0);
  if (document.activeElement === document.body) main.focus({ preventScroll: true }); // what was left is gone; go on from the new
});

// --- light and dark --------------------------------------------------------------------------------------------------
const toggle = document.getElementById("theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const dark = () => (document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";

function paint(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  toggle.textContent = dark() ? "Light" : "Dark";
  toggle.setAttribute("aria-label", dark() ? "Switch to light colours" : "Switch to dark colours");
}

const switchTheme = () => {
  const theme = dark() ? "light" : "dark";
  kept.set("theme", theme);
  paint(theme);
};
toggle.addEventListener("click", switchTheme);
prefersDark.addEventListener("change", () => paint());
const chosen = kept.get("theme");
paint(chosen === "light" || chosen === "dark" ? chosen : null);

// --- keys ------------------------------------------------------------------------------------------------------------
const help = document.getElementById("help");
document.getElementById("keys").addEventListener("click", () => help.showModal());
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says what is shown, so it cannot name a place too
  main.focus();
});

function search() {
  const side = main.querySelector("details.side");
  if (side) side.open = true;
  const field = document.getElementById("search");
  if (field) {
    field.focus();
    field.select();
  } else location.hash = "#/tasks";
}

function up() {
  const where = readAddress();
  if (where.view === "compare") location.hash = taskAddress(where.run, where.task);
  else if (where.view === "task") location.hash = runAddress(where.run);
  else location.hash = "#/";
}

/** The next task (by 1) or the one before (by -1): opened where one is open, else the focus moves along the rows. */
function move(by) {
  const where = readAddress();
  if (where.task !== undefined) {
    const { before, after } = neighbours(where.task, [runs.get(where.run), runs.get(where.other)].filter(Boolean));
    const next = by > 0 ? after : before;
    if (next)
      location.hash =
        where.view === "compare" ? compareAddress(where.run, where.other, next.id) : taskAddress(where.run, next.id);
    return;
  }
  along(by);
}

function along(by) {
  const links = [...main.querySelectorAll(".row-link")];
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
  if (next) next.focus();
}

function sibling(by) {
  const where = readAddress();
  if (where.view !== "task") return;
  const among = selected();
  const next = among[among.findIndex((run) => run.id === where.run) + by];
  if (next) location.hash = taskAddress(next.id, where.task);
}

const KEYS = {
  "/": search,
  j: () => move(1),
  k: () => move(-1),
  "[": () => sibling(-1),
  "]": () => sibling(1),
  t: switchTheme,
  "?": () => help.showModal(),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const field = event.target;
  const typing = field.matches && field.matches("input:not([type=range]), select, textarea");
  if (event.key === "Escape") return escape(field, typing);
  const rows = field.classList && field.classList.contains("row-link");
  if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (rows || field.id === "search")) {
    event.preventDefault();
    along(event.key === "ArrowDown" ? 1 : -1);
  } else if (!typing && Object.hasOwn(KEYS, event.key)) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

function escape(field, typing) {
  if (!typing) return up();
  if (field.id === "search" && field.value) {
    field.value = "";
    field.dispatchEvent(new Event("input"));
  } else field.blur();
}

draw();
