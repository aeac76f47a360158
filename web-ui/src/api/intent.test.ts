import { expect, it } from "vitest";

import { Intents } from "./intent";

it("keeps the key of a request until it is done", () => {
  const intents = new Intents();
  const first = intents.keyOf({ verb: "retry", job: "job-1" });
  expect(intents.keyOf({ verb: "retry", job: "job-1" })).toBe(first);
  intents.done({ verb: "retry", job: "job-1" });
  expect(intents.keyOf({ verb: "retry", job: "job-1" })).not.toBe(first);
});

it("has another key for another request", () => {
  const intents = new Intents();
  expect(intents.keyOf({ prompt: "a" })).not.toBe(intents.keyOf({ prompt: "b" }));
});
