// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { FakeBrowser, FakeServer } from "./fake_browser";
import { LiveHub, type Listener } from "./hub";

let browser: FakeBrowser;
let server: FakeServer;

beforeEach(() => {
  browser = new FakeBrowser();
  server = new FakeServer();
  vi.stubGlobal("fetch", server.fetch);
});
afterEach(() => {
  server.stop();
  vi.unstubAllGlobals();
});

/** A tab that follows topics, and what it heard of. */
function openTab(...topics: string[]) {
  const tab = browser.open();
  const hub = tab.run(() => new LiveHub("test"));
  const heard: string[] = [];
  const event: Listener["event"] = ({ type, data }) => {
    const { id, event } = (data ?? {}) as { id?: string; event?: { seq: number } };
    if (type === "event") heard.push(`event ${event?.seq}`);
    else if (type === "job") heard.push(`job ${id}`);
  };
  hub.listen({ event });
  tab.run(() => {
    topics.forEach((topic) => hub.follow(topic));
    hub.start();
  });
  // The browser ends a tab's stream with the tab.
  const close = () => {
    tab.close();
    hub["connection"]?.stop();
  };
  return { hub, heard, close };
}

it("opens one stream for the topics of all tabs", async () => {
  const first = openTab("jobs");
  await server.until(1);
  const second = openTab("jobs", "job:job-x");
  await server.until(2);
  expect(server.open).toHaveLength(1);
  expect(server.open[0]?.topics).toEqual(["job:job-x", "jobs"]);

  server.send("1", "job", { id: "a" });
  await vi.waitFor(() => expect([first.heard, second.heard]).toEqual([["job a"], ["job a"]]));
});

it("goes on at the last event, with the jobs of all tabs, when the tab with the stream closes", async () => {
  const first = openTab("jobs");
  await server.until(1);
  const second = openTab("jobs", "job:job-x");
  await server.until(2);
  const third = openTab("inbox");
  await server.until(3);
  server.send("7,x:3", "event", { job_id: "job-x", event: { seq: 3 } });
  await vi.waitFor(() => expect(second.heard).toEqual(["event 3"]));

  first.close();
  await server.until(4);

  expect(server.open).toHaveLength(1);
  expect(server.open[0]).toMatchObject({ cursor: "7,x:3", topics: ["inbox", "job:job-x", "jobs"] });
  server.send("7,x:3", "event", { job_id: "job-x", event: { seq: 3 } });
  server.send("7,x:4", "event", { job_id: "job-x", event: { seq: 4 } });
  await vi.waitFor(() => expect(second.heard).toEqual(["event 3", "event 4"]));
  expect(third.heard).toEqual(["event 3", "event 4"]);
});

it("tells a tab that joins where followed jobs are, without another stream", async () => {
  openTab("job:job-x");
  await server.until(1);
  server.send("1,x:5", "event", { job_id: "job-x", event: { seq: 5 } });
  const second = openTab("job:job-x");
  const places: unknown[] = [];
  second.hub.listen({ event: ({ type, data }) => type === "ready" && places.push(data) });

  await vi.waitFor(() => expect(places).toEqual([{ jobs: { "job-x": 5 } }]));
  expect(server.count).toBe(1);
});

it("lets another tab lead when its login is over", async () => {
  server.status = 401;
  const first = openTab("jobs");
  await server.until(1);
  server.status = 200;
  const second = openTab("jobs");
  await server.until(2);

  server.send("1", "job", { id: "a" });
  await vi.waitFor(() => expect(second.heard).toEqual(["job a"]));
  expect(first.heard).toEqual(["job a"]);
});
