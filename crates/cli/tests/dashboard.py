"""Drives the dashboard of a running network in Chromium. Arguments: the address of the page, the
path of Chromium, what to try, and arguments of that."""

import json
import re
import sys
import urllib.parse

from playwright.sync_api import expect, sync_playwright

url, chromium, scenario, *nodes = sys.argv[1:]
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
    expect(page.locator("#charts .uplot")).to_have_count(6)
    with page.expect_download() as saved:
        page.click("#export")
    with open(saved.value.path(), encoding="utf-8") as events:
        exported = events.read()
    # Beside the changes there are the queues of these links, which a repetition begins with.
    later = [event for event in exported.split("[[event]]") if "50ms" in event]
    assert len(later) == 3, exported


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


FIELDS = ["delay", "rate", "loss", "queue", "jitter", "reorder", "duplicate", "corrupt", "slots", "overhead"]


def choose(page, link):
    """Chooses one link in the list."""
    page.locator(f'#links tr[data-link="{link}"] td:nth-child(2)').click()
    expect(page.locator("#chosen-title")).to_have_text(link)


def values(page, link):
    """Returns the values of a link, in both directions."""
    directions = request(page, "/links/" + urllib.parse.quote(link, safe=""))["directions"]
    return [(pipe["values"], pipe["delay"], pipe["rate"], pipe["queue"], pipe["state"]) for pipe in directions]


def fields_accept_what_they_show(page, links):
    """Sets every field of every link to the text that it shows: nothing changes."""
    choose(page, links[0])
    page.locator("#controls summary").click()
    shown_at_all = set()
    for link in links:
        choose(page, link)
        before = values(page, link)
        for direction in before[0][0], before[1][0]:
            assert set(direction) <= {*FIELDS, "state"}, direction
        shown = {key: page.locator(f"#{key}").input_value() for key in FIELDS}
        for key, text in shown.items():
            field = page.locator(f"#{key}")
            if text == "":
                # The directions have different values.
                expect(field).to_have_attribute("placeholder", "different values")
                continue
            shown_at_all.add((key, text))
            field.fill("")
            field.fill(text)
        page.locator("#answer").evaluate("place => { place.textContent = ''; }")
        page.click("#set")
        expect(page.locator("#answer")).to_have_text(re.compile(rf"^Set for {re.escape(link)} at "), timeout=5000)
        assert values(page, link) == before, (link, shown, before, values(page, link))
    for key in FIELDS:
        assert sum(1 for shown, _ in shown_at_all if shown == key) > 1, (key, shown_at_all)
    # A field can be wrong.
    page.locator("#queue").fill("{ kind = 'rod' }")
    page.click("#set")
    expect(page.locator("#answer.bad")).to_contain_text('write "red"')


def a_session(page, events):
    """Changes links and traces, and exports that."""
    choose(page, "a-s")
    page.locator("#delay").fill("700ms")
    page.locator("#delay").press("Enter")
    expect(page.locator("#answer")).to_contain_text("Set for a-s")
    assert float(page.locator("#delay-slider").get_attribute("max")) > 500
    page.get_by_role("button", name="Start traces of cell").click()
    expect(page.locator("#answer")).to_contain_text("Traces of cell started")
    expect(page.locator("#changes li").first).to_have_text(re.compile("traces of cell start$"))
    choose(page, "b-s")
    expect(page.locator("#rate")).to_have_js_property("readOnly", True)
    expect(page.locator("#rate")).to_have_attribute("title", re.compile("^The trace .*t.csv sets it.$"))
    page.get_by_role("button", name="Stop traces of cell").click()
    expect(page.locator("#rate")).to_have_js_property("readOnly", False)
    page.locator("#rate").fill("6Mbit")
    page.locator("#rate").press("Enter")
    expect(page.locator("#answer")).to_contain_text("Set for b-s")
    choose(page, "c-s")
    page.locator("#preset").select_option("docsis")
    page.locator("#subscriber").select_option("0")
    page.click("#use-preset")
    expect(page.locator("#answer")).to_contain_text("Preset docsis set for c-s")
    preset = values(page, "c-s")
    assert preset[0] != preset[1] and preset[0][0]["delay"], preset
    page.click("#restore")
    expect(page.locator("#answer")).to_contain_text("c-s has the values of the spec")
    assert all("delay" not in direction[0] for direction in values(page, "c-s"))
    page.click("#use-preset")
    expect(page.locator("#answer")).to_contain_text("Preset docsis")
    page.get_by_role("button", name="Start traces of cell").click()
    expect(page.locator("#answer")).to_contain_text("Traces of cell started")
    with page.expect_download() as saved:
        page.click("#export")
    saved.value.save_as(events)


def only_the_keyboard(page):
    """Goes to a link on the map, chooses and changes it, without a pointer."""
    page.locator("#svg").focus()
    page.keyboard.press("Tab")
    expect(page.locator("#map")).to_be_focused()
    page.keyboard.press("Tab")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate("document.activeElement.matches('#map .node')"), page.evaluate(focused)
    # Arrows lead to every node and link.
    seen, found = {page.evaluate(focused)}, True
    while found:
        found = False
        for key in ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"]:
            for _ in range(20):
                page.keyboard.press(key)
                label = page.evaluate(focused)
                found = found or label not in seen
                seen.add(label)
    links = [link["name"] for link in request(page, "/links")]
    assert {label for label in seen if label.startswith("link ")} and len(seen) > len(nodes) / 2, seen
    for _ in range(200):
        if page.evaluate("document.activeElement.matches('#map .hit')"):
            break
        page.keyboard.press(["ArrowLeft", "ArrowDown", "ArrowRight", "ArrowUp"][_ % 4])
    outline = page.evaluate("getComputedStyle(document.activeElement).stroke")
    assert outline not in ("transparent", "rgba(0, 0, 0, 0)", "none"), outline
    page.keyboard.press("Enter")
    title = page.locator("#chosen-title")
    expect(title).not_to_have_text("No link is chosen")
    link = title.text_content()
    assert link in links, link
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "delay":
            break
    expect(page.locator("#delay")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("33ms")
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_have_text(re.compile(rf"^Set for {re.escape(link)} at "))
    assert request(page, "/links/" + urllib.parse.quote(link, safe=""))["directions"][0]["delay"] == "33ms"


def files(page):
    """Saves the map, and a capture."""
    with page.expect_download() as saved:
        page.click("#svg")
    with open(saved.value.path(), encoding="utf-8") as file:
        svg = file.read()
    assert "<style>" in svg and "var(--" not in svg and svg.count('class="node ') == len(nodes), svg[:2000]
    page.locator("#links tbody input").first.check()
    page.click("#capture")
    expect(page.locator("#answer")).to_contain_text(re.compile(r"Captures: \d+ bytes"))
    with page.expect_download() as saved:
        page.click("#capture")
    with open(saved.value.path(), "rb") as file:
        assert file.read(4) == bytes([0x0A, 0x0D, 0x0D, 0x0A]), "pcapng begins with a section header"
    expect(page.locator("#link code")).to_contain_text("fastpath capture --lab dashboard -w ")


def a_host(page):
    """Shows the programs and the log of a host, and how to enter it."""
    page.locator('#map [data-key="node a"]').click()
    panel = page.locator("#node")
    expect(panel).to_contain_text("sleep 1000")
    expect(panel.locator("code").first).to_have_text("fastpath lab exec dashboard a")
    expect(panel.locator("pre")).to_contain_text("hello from a")


def a_switch(page):
    """Shows the flows of an OpenFlow switch, with counters."""
    page.locator('#map [data-key="node o"]').click()
    panel = page.locator("#node")
    expect(panel).to_contain_text("Flows: 1")
    expect(panel.locator("table").first).to_contain_text("NORMAL")
    expect(panel.locator("table").nth(2)).to_contain_text("d-o")


def lateness_falls(page):
    """A lateness is that of the time since the sample before; without a frame there is none."""
    found = page.evaluate(FALLING)
    assert found == [7, None, 0.5], found


FALLING = """async () => {
  const { Network } = await import("/state.js");
  const network = new Network();
  const pipe = { rate: "20Mbit", delay: "5ms", overhead: 0, state: "up", values: {} };
  const links = [{ name: "l", ends: ["a", "b"], interfaces: ["eth0", "eth0"], directions: [pipe, pipe] }];
  const send = (kind, at_s, lateness) => network.take(kind, {
    at_s, rows: [[0, lateness]], fields: ["lateness_p99_us"], links, period_ms: 400, tolerance: "1ms",
    failures: [], missed: 0, changes: 0,
  });
  send("state", 0.4, 7000);
  send("sample", 0.8, null);
  send("sample", 1.2, 500);
  return network.links[0].directions[0].history.map((sample) => sample.latenessMs);
}"""


def percents(page):
    """Returns the headroom of each link, and of each worker, as the page shows it."""
    links = page.locator("#links tbody tr td:nth-child(8)").all_text_contents()
    workers = re.findall(r"worker \d+: (\d+) % headroom", page.locator("#totals").text_content())
    return [float(text.rstrip(" %")) for text in links], [float(text) for text in workers]


def wait_for(page, what, is_there):
    """Waits until `is_there` is true of the headrooms on the page."""
    for _ in range(150):
        if is_there(*percents(page)):
            return
        page.wait_for_timeout(100)
    raise AssertionError((what, percents(page)))


def metrics(page):
    """Returns the headrooms of links and of workers in the metrics, in %."""
    answer = page.request.get(site + "/metrics", headers={"authorization": f"Bearer {token}"})
    text = answer.text()
    value = r"\{.*\} ([\d.e-]+)$"
    return [
        [100 * float(found) for found in re.findall(f"^fastpath_{kind}_headroom_ratio{value}", text, re.M)]
        for kind in ("link", "worker")
    ]


def headroom(page):
    """The headroom of links and workers is that of the metrics, and changes with the load."""
    wait_for(page, "20 % of the rate", lambda links, workers: 75 < links[0] < 85 and len(workers) == 1)
    # The metrics are of the time since they were last read.
    metrics(page)
    page.wait_for_timeout(2000)
    (forward, back), (worker,) = metrics(page)
    (shown,), (worker_shown,) = percents(page)
    assert abs(min(forward, back) - shown) < 5 and abs(worker - worker_shown) < 10, (forward, back, shown, worker)
    choose(page, "a-b")
    # A quarter of the rate is four times the load.
    page.locator("#rate").fill("2500kbit")
    page.locator("#rate").press("Enter")
    wait_for(page, "80 % of the rate", lambda links, _: 10 < links[0] < 30)
    page.locator("#rate").fill("10Mbit")
    page.locator("#rate").press("Enter")
    wait_for(page, "20 % again", lambda links, _: 75 < links[0] < 85)


def warning(page):
    """A worker that has too much to do is told before a frame is later than the tolerance."""
    expect(page.locator("#problem")).to_have_text(re.compile(r"worker 0 is busy \d+ % of the time"), timeout=30000)
    expect(page.locator("#totals")).to_contain_text(" 0 frames more than 2s late")
    links, (worker,) = percents(page)
    # A link without a rate has what the worker has.
    assert worker <= 20 and all(link <= 20 for link in links), (links, worker)


def figure(page, scheme, width):
    """Emulab's figure: the whole page."""
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
        lateness_falls(page)
        only_the_keyboard(page)
        files(page)


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    sizes = [("light", 1280), ("dark", 390)] if scenario == "figure" else [("light", 1280)]
    for scheme, width in sizes:
        page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
        watch(page)
        if scenario == "figure":
            figure(page, scheme, width)
            continue
        page.goto(url)
        expect(page.locator("#status")).to_have_text("live")
        expect(page.locator("#links tbody tr").first).to_be_attached()
        if scenario == "values":
            fields_accept_what_they_show(page, nodes)
            # The page has been told what it shows of a refusal.
            complaints[:] = [line for line in complaints if "400" not in line]
        elif scenario == "session":
            a_host(page)
            a_switch(page)
            a_session(page, nodes[0])
        elif scenario == "headroom":
            headroom(page)
        elif scenario == "warning":
            warning(page)
    browser.close()
assert complaints == [], json.dumps(complaints)
