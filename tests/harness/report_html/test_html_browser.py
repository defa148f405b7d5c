"""The report in a real headless Chromium."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from html_runs import HOSTILE, HUGE, write_run

from harness.report.html.page import build
from harness.store.view import RunView

Open = Callable[..., Any]
TASK = "#sepm%2Frun/pick%2Ftask%202"


def texts(page: Any, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def states(page: Any) -> list[str]:
    return [str(text) for text in page.locator(".node-state").all_text_contents()]


def wait_for_address(page: Any, address: str) -> None:
    page.wait_for_function("address => location.hash === address && document.querySelector('main h1')", arg=address)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("address", ["", "#/tasks", "#sepm%2Frun", TASK, "#none-run+sepm%2Frun/pick%2Ftask%202", "#no%20such"])
def test_every_view_fits_the_screen_in_both_schemes(open_page: Open, address: str, width: int, scheme: str) -> None:
    page = open_page(address, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert dark == (scheme == "dark")
    assert page.locator("main h1").count() == 1


def test_the_leaderboard_has_every_run_with_its_numbers(open_page: Open) -> None:
    page = open_page()
    rows = {row.split("\n")[0].split("\t")[0].strip(): row for row in texts(page, ".board tbody tr")}
    assert [name.split(" ·")[0] for name in rows] == ["none", "sepm", "metagpt", "none"]  # by score, the best first
    sepm = next(row for name, row in rows.items() if name.startswith("sepm"))
    assert "85.7 [48.7, 97.4]" in sepm and "+1" in sepm  # six of seven, one lost to infrastructure
    assert "+71.4" in sepm and "0.063 (0.125)" in sepm  # 5 tasks better, none worse: 2 / 2^5; times two comparisons
    graded = next(row for name, row in rows.items() if name.startswith("metagpt"))
    assert "320 est." not in graded and "1,920 est." in graded
    assert graded.rstrip().endswith("–")  # no price, no cost


def test_a_run_of_another_environment_is_not_compared_and_says_why(open_page: Open) -> None:
    page = open_page()
    double = page.locator(".board tbody tr", has_text="scripted").first
    assert double.locator("[data-name='Δ points']").inner_text().strip() == "–"
    assert "not compared: env: 'alfworld' → 'toy'" in double.locator("[data-name='Δ points'] span").get_attribute("title")
    assert "Scripted: none · toy · scripted. A script gave the answers" in page.locator(".scripted-note").inner_text()


def test_sorting_filtering_and_another_baseline(open_page: Open) -> None:
    page = open_page()
    page.click("#sort-tokens")
    assert page.locator("#sort-tokens").evaluate("e => e === document.activeElement")
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Tokens")
    page.select_option("#f-env", "alfworld")
    assert page.locator(".board tbody tr").count() == 3
    page.select_option("#baseline", "sepm/run")
    none = page.locator(".board tbody tr", has_text="none").first
    assert "−71.4" in none.inner_text()
    page.select_option("#f-method", "metagpt")
    assert page.locator(".board tbody tr").count() == 1


def test_tasks_are_searched_and_filtered(open_page: Open) -> None:
    page = open_page("#/tasks")
    assert page.locator(".matrix tbody tr").count() == 8
    page.fill("#search", "WARM mug 3")
    assert texts(page, ".matrix tbody .id") == ["heat/task 3"]
    page.fill("#search", "")
    page.select_option("#t-family", "heat")
    assert page.locator(".matrix tbody tr").count() == 4
    page.select_option("#t-outcome", "lost")
    assert texts(page, ".matrix tbody .id") == ["heat/task 7"]
    page.fill("#search", "nothing like it")
    assert texts(page, ".empty") == ["No task fits."]


def test_a_task_shows_who_said_what(open_page: Open) -> None:
    page = open_page("#/tasks")
    page.click("text=warm mug 2")
    page.wait_for_selector("main .turn")
    assert page.url.endswith("/pick%2Ftask%202")
    assert texts(page, ".said") == ["none goes to room 2", "none heats"]
    assert texts(page, ".command") == ["go to shelf 1", "heat mug with none"]
    assert texts(page, ".step .error") == ["too hot"]
    assert page.locator(".prompt").count() == 0
    page.locator("summary", has_text="Prompt (2 messages)").last.click()
    page.wait_for_selector(".prompt")
    assert page.locator(".prompt").last.evaluate("e => e.textContent") == "Room 2\n> go to shelf 1\nYou arrive at shelf 1.\n> "
    page.locator("summary", has_text="2 calls, 200 tokens in, 40 out").click()
    page.wait_for_selector(".calls tbody tr")
    assert page.locator(".calls tbody tr").count() == 2


def test_an_address_survives_a_reload(open_page: Open) -> None:
    page = open_page(TASK)
    page.reload()
    page.wait_for_selector("main .turn")
    assert texts(page, "main h1")[0].endswith("Your task: warm mug 2")
    assert texts(page, ".list [aria-current] .id") == ["pick/task 2"]


def test_the_graph_follows_the_slider(open_page: Open) -> None:
    page = open_page(TASK)
    assert states(page) == ["verified", "failed"]
    assert page.locator(".slider-words").inner_text() == "step 2 of 2: heat mug with sepm"
    page.focus("#slider")
    page.keyboard.press("ArrowLeft")
    assert states(page) == ["verified", "running"]
    assert texts(page, ".slider-notes p") == ["Divergence solver: goal 0.50", "Correction to solver: Your goal has drifted."]
    page.keyboard.press("Home")
    assert states(page) == ["pending", "pending"]


def test_what_was_read_and_what_it_became(open_page: Open) -> None:
    page = open_page(TASK)
    assert "warm things\n1. find\n2. heat" in page.locator("section[aria-labelledby=h-memory]").inner_text()
    assert texts(page, ".diff .ins") == ["+\nopen"]
    assert page.locator(".diff .same").count() == 2
    page.goto(page.url.replace("sepm%2Frun", "none-run"))
    page.wait_for_selector("text=does not say what the memory gave")


def test_two_methods_side_by_side(open_page: Open) -> None:
    page = open_page(TASK)
    page.select_option("#with", "none-run")
    page.wait_for_selector(".pairs")
    assert page.url.endswith("#sepm%2Frun+none-run/pick%2Ftask%202")
    assert texts(page, ".pairs .pair.differ .command") == ["heat mug with sepm", "heat mug with none"]
    assert page.locator(".pairs .pair").count() == 2
    assert [text.split("\n")[0] for text in texts(page, ".side-head .facts-line span:first-child")] == [
        "score 100.0",
        "score 0.0",
    ]


def test_everything_by_keyboard(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("/")
    page.wait_for_selector("#search")
    page.keyboard.press("/")
    page.keyboard.type("warm")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("main .turn")
    assert page.url.endswith("heat%2Ftask%201")
    page.keyboard.press("j")
    wait_for_address(page, "#none-run/pick%2Ftask%202")
    page.keyboard.press("k")
    wait_for_address(page, "#none-run/heat%2Ftask%201")
    page.keyboard.press("]")
    wait_for_address(page, "#sepm%2Frun/heat%2Ftask%201")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    wait_for_address(page, "#sepm%2Frun")
    page.keyboard.press("Escape")
    wait_for_address(page, "#/")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_scheme_can_be_switched_and_stays(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert page.locator("#theme").inner_text() == "Light"


@pytest.mark.parametrize("address", ["#sepm%2Frun/pick%2Ftask%200", "#sepm%2Frun+none-run/pick%2Ftask%200"])
def test_what_a_model_wrote_stays_text(open_page: Open, address: str) -> None:
    page = open_page(address)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    shown = HOSTILE.replace("\ud800", "\ufffd")
    page.wait_for_selector(".command >> text=window.pwned")
    found = page.locator(".command").evaluate_all("all => all.map(e => e.textContent.replace('\\ud800', '\\ufffd'))")
    assert shown in found
    assert page.evaluate("[window.pwned, document.images.length]") == [None, 0]
    assert page.locator("main .observation").last.evaluate("e => e.textContent.length") == 4000
    page.locator(".more").last.click()
    assert page.locator("main .observation").last.evaluate("e => e.textContent") == HUGE
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_script_that_got_in_would_not_run(chromium: Any, report: Path) -> None:
    page = chromium.new_page()
    page.goto(report.as_uri())
    page.evaluate("const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s)")
    page.evaluate(
        "() => new Promise(done => { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.pwned = 2\">');"
        " document.images[0].addEventListener('error', done); })"
    )
    assert page.evaluate("window.pwned") is None
    page.close()


def test_a_task_in_play_is_not_taken_for_a_lost_one(open_page: Open, tmp_path: Path) -> None:
    run = write_run(tmp_path, "run", "none", [1, "open"])
    page = open_page("#run/heat%2Ftask%201", file=build([RunView(run)], tmp_path / "out").path)
    assert page.locator(".facts-line").inner_text() == "no result: in play, or interrupted"
    assert texts(page, ".command") == ["go to shelf 1"]


def test_lost_and_failed_tasks_say_so(open_page: Open) -> None:
    page = open_page("#sepm%2Frun/heat%2Ftask%207")
    assert "no result: infrastructure failure, not scored" in page.locator(".facts-line").inner_text()
    assert "attempt 1: infra failure, 1 call, 120 tokens, $0.01. the site is down" in page.locator(".box.warn").inner_text()
    page.goto(page.url.replace("heat%2Ftask%207", "pick%2Ftask%206"))
    page.wait_for_selector("text=agent failure, scored 0")
    assert texts(page, ".result .error") == ["no answer"]


def test_printing_leaves_the_controls_out(open_page: Open) -> None:
    page = open_page(TASK)
    page.emulate_media(media="print")
    assert not page.locator(".side").is_visible() and not page.locator(".top").is_visible()
    assert page.locator(".turn").first.is_visible()


def test_nothing_moves_once_it_is_drawn(open_page: Open) -> None:
    page = open_page()
    moved = page.evaluate(
        "() => new Promise(done => { let sum = 0; new PerformanceObserver(list => list.getEntries().forEach(e => { sum += e.value; }))"
        ".observe({ type: 'layout-shift', buffered: true }); requestAnimationFrame(() => requestAnimationFrame(() => done(sum))); })"
    )
    assert moved == 0


def test_seeds_are_compared_with_the_baseline_of_their_own(open_page: Open, tmp_path: Path) -> None:
    runs = []
    for seed, scores in ((0, [0, 0]), (1, [1, 0])):
        runs.append(write_run(tmp_path, f"none-{seed}", "none", scores, seed=seed))
        runs.append(write_run(tmp_path, f"metagpt-{seed}", "metagpt", [1, 1], seed=seed))
    page = open_page(file=build([RunView(run) for run in runs], tmp_path / "out").path)
    shown = {row.split("\t")[0].split("\n")[0].strip(): row for row in texts(page, ".board tbody tr")}
    assert "+100.0" in shown["metagpt · seed 0"] and "vs" not in shown["metagpt · seed 0"]
    assert "+50.0" in shown["metagpt · seed 1"] and "vs none · seed 1" in shown["metagpt · seed 1"]
