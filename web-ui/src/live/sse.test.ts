import { expect, it } from "vitest";

import { parseEvent, readEvents } from "./sse";

function bodyOf(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => {
      chunks.forEach((chunk) => controller.enqueue(chunk));
      controller.close();
    },
  });
}

async function all(body: ReadableStream<Uint8Array>) {
  const events = [];
  for await (const event of readEvents(body)) events.push(event);
  return events;
}

it("reads the fields of an event, and a comment as an event without a type", () => {
  expect(parseEvent('id: 7-3fa07,2026:1\nevent: job\ndata: {"a":"b: c"}')).toEqual({
    id: "7-3fa07,2026:1",
    type: "job",
    data: '{"a":"b: c"}',
  });
  expect(parseEvent(": still here")).toEqual({ id: null, type: "", data: "" });
  expect(parseEvent("data: one\ndata:two").data).toBe("one\ntwo");
});

it("joins events that arrive in pieces, also within a character", async () => {
  const bytes = new TextEncoder().encode("event: a\ndata: 🐄\n\nevent: b\ndata: 2\n\n");
  const whole = await all(bodyOf(bytes));
  expect(whole.map(({ type, data }) => [type, data])).toEqual([
    ["a", "🐄"],
    ["b", "2"],
  ]);
  for (let cut = 1; cut < bytes.length; cut += 1) {
    expect(await all(bodyOf(bytes.slice(0, cut), bytes.slice(cut)))).toEqual(whole);
  }
});

it("drops an event that was not finished: the stream is continued after the last whole one", async () => {
  const bytes = new TextEncoder().encode("event: a\ndata: 1\n\nevent: b\ndata: 2\n");
  expect((await all(bodyOf(bytes))).map(({ type }) => type)).toEqual(["a"]);
});
