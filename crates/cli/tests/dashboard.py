"""Drives the dashboard of a running network in Chromium. Arguments: the address of the page, the
path of Chromium, and the names of all nodes."""

import json
import re
import sys
import urllib.parse

from playwright.sync_api import expect, sync_playwright

url, chromium, *nodes = sys.argv[1:]
site, token = url.split("/#token=")
complaints = []


def request(page, path):
    """Returns the answer of the control interface as JSON."""
    answer = page.request.get(site + path, headers={"authorization": f"Bearer {token}"})
    assert answer.ok, (path, answer.status)
    return answer.json()


def watch(page):
    """Collects errors, dialogs and requests to other sites."""
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))

    def requested(made):
        if not made.url.startswith((site, "data:", "blob:")):
            complaints.append(f"request to {made.url}")

    page.on("request", requested)


def three_links_at_one_instant(page):
    """Chooses three links and drags the delay."""
    boxes = page.locator("#links tbody input")
    names = [boxes.nth(i).get_attribute("aria-label") for i in range(3)]
    for i in range(3):
        boxes.nth(i).check()
    page.locator("#delay-slider").fill("50")
    expect(page.locator("#answer")).to_contain_text("Set for 3 links")
    changes = request(page, "/changes")["changes"]
    assert [change["link"] for change in changes] == names, changes
    assert len({change["at"] for change in changes}) == 1, changes
    for name in names:
        link = request(page, "/links/" + urllib.parse.quote(name, safe=""))
        assert [pipe["delay"] for pipe in link["directions"]] == ["50ms"] * 2, link
    expect(page.locator("#changes li")).to_have_count(3)
    expect(page.locator("#changes li").first).to_have_text(re.compile(r"^\d+\.\d{3} s  .*delay = 50ms$"))
    expect(page.locator("#losses")).to_contain_text("Since the start: ")
    expect(page.locator("#charts .uplot")).to_have_count(5)
    with page.expect_download() as saved:
        page.click("#export")
    with open(saved.value.path(), encoding="utf-8") as events:
        assert events.read().count("[[event]]") == 3


def keys(page):
    """Searches and leaves the choice by keys alone."""
    page.locator("#delay-slider").blur()
    page.keyboard.press("/")
    page.keyboard.type(nodes[0])
    expect(page.locator("#map .node.found").first).to_be_attached()
    page.locator("#search").fill("")
    page.locator("#map").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#chosen-title")).to_have_text("No link is chosen")


STALLED = """async () => {
  const { Network } = await import("/state.js");
  const network = new Network();
  const pipe = { rate: "20Mbit", overhead: 0, state: "up" };
  const fields = ["bytes_in", "bytes_out", "frames_out", "marked", "queued_frames", "queueing_delay_us",
    "lateness_p99_us"];
  const links = [{ name: "l", ends: ["a", "b"], directions: [pipe, pipe] }];
  // 20 Mbit/s without a pause, and no sample from 2 to 14 s.
  const rows = (at) => [[0, 2.5e6 * at, 2.5e6 * at, 2500 * at, 0, 10, 4000, 50]];
  const send = (kind, at_s) => network.take(kind, {
    at_s, rows: rows(at_s), fields, links, period_ms: 400, tolerance: "1ms", failures: [], missed: 0, changes: 0,
  });
  send("state", 0.4);
  for (const at of [0.8, 1.2, 1.6, 2, 14, 14.4]) send("sample", at);
  const [direction] = network.links[0].directions;
  const history = direction.history.map((sample) => ({ ...sample }));
  send("state", 0.4);
  return { history, afterwards: direction.history, outBps: direction.outBps };
}"""


def no_line_over_a_stall(page):
    """Samples that come late: the rate is over the real interval, and what is sampled has a gap."""
    found = page.evaluate(STALLED)
    history = found["history"]
    assert [round(sample["outMbit"], 6) for sample in history] == [0] + [20] * 7, history
    gaps = [sample["atS"] for sample in history if sample["queueingDelayMs"] is None]
    assert len(gaps) == 1 and 2 < gaps[0] < 2.1, history
    # Another run under the same address begins at 0.
    assert len(found["afterwards"]) == 1 and found["outBps"] == 0, found


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    for scheme, width in [("light", 1280), ("dark", 390)]:
        page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
        watch(page)
        page.goto(url)
        expect(page.locator("#status")).to_have_text("live")
        expect(page.locator("#map .node")).to_have_count(len(nodes))
        shown = page.locator("#map .node text:not(.note)").all_text_contents()
        assert sorted(shown) == sorted(nodes), (shown, nodes)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page is as wide as its window"
        if scheme == "light":
            three_links_at_one_instant(page)
            keys(page)
            no_line_over_a_stall(page)
    browser.close()
assert complaints == [], json.dumps(complaints)
