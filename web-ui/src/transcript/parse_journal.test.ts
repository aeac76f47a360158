import { expect, it } from "vitest";

import { parseFile, parseLines } from "./parse_journal";

const line = (seq: number, epoch: number, content = `${seq}`) =>
  JSON.stringify({ type: "assistant", seq, epoch, content });

it("takes only the lines that count, as every reader of journals does", () => {
  const text = [
    line(1, 1),
    line(2, 1),
    line(3, 2),
    line(3, 1, "fenced"),
    line(3, 2, "again"),
    line(4, 2),
    "{brok",
  ].join("\n");
  const { events, ignored } = parseLines(text);
  expect(events.map((event) => [event.seq, event.epoch])).toEqual([
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 2],
  ]);
  expect(ignored).toBe(3);
});

it("names a journal by its header, and refuses other files", () => {
  const header = {
    type: "system",
    subtype: "header",
    seq: 1,
    epoch: 1,
    extra: { id: "job-1", agent: "coder" },
  };
  const file = parseFile("x.jsonl", `${JSON.stringify(header)}\n${line(2, 1)}\n`);
  expect(file).toMatchObject({ jobs: [{ id: "job-1" }], facts: [["agent", "coder"]] });
  expect(() => parseFile("notes.txt", "hello")).toThrow("no events");
});

it("opens what session export wrote", () => {
  const data = {
    session: { id: "sess-1", agent: "coder" },
    jobs: [{ job: { id: "job-1" }, events: [JSON.parse(line(1, 1)) as unknown, { no: "event" }] }],
  };
  const file = parseFile("s.json", JSON.stringify({ schema: "nightherd/v1/session_export", data }));
  expect(file.jobs[0]?.events).toHaveLength(1);
});
