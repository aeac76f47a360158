import { expect, it } from "vitest";

import { bodyOf, EMPTY_FORM, inputNames, missingOf } from "./start_body";

const form = { ...EMPTY_FORM, agent: "coder" };

it("sends nothing that was not given: the agent's own settings count", () => {
  expect(bodyOf(form, [])).toEqual({ agent: "coder" });
});

it("finds the values that a prompt takes, each once", () => {
  expect(inputNames("Fix ${inputs.file} in ${inputs.part}, then ${inputs.file} ${HOME}")).toEqual([
    "file",
    "part",
  ]);
});

it("sends only values that the prompt takes", () => {
  const given = { ...form, inputs: { file: "a.py", other: "x", part: "" } };
  expect(bodyOf(given, ["file", "part"])).toEqual({ agent: "coder", inputs: { file: "a.py" } });
});

it("chooses the session in one way only", () => {
  const session = { ...form, session: "sess-1", channel: "c" };
  expect(bodyOf({ ...session, choice: "new" }, [])).toEqual({
    agent: "coder",
    session: "fresh_per_job",
  });
  expect(bodyOf({ ...session, choice: "kept" }, [])).toEqual({
    agent: "coder",
    session: "persistent",
  });
  expect(bodyOf({ ...session, choice: "channel" }, [])).toEqual({
    agent: "coder",
    session: "per_channel",
    channel: "c",
  });
  expect(bodyOf({ ...session, choice: "resume" }, [])).toEqual({
    agent: "coder",
    resume: "sess-1",
  });
  expect(bodyOf({ ...session, choice: "fork" }, [], true)).toEqual({
    agent: "coder",
    fork: "sess-1",
  });
  expect(bodyOf({ ...session, choice: "own" }, [], true)).toEqual({
    agent: "coder",
    channel: "c",
    branch: true,
  });
});

it("sends numbers as numbers and limits as texts", () => {
  const given = {
    ...form,
    maxTurns: "20",
    priority: "-3",
    timeout: " 30m ",
    limits: { spend: "2" },
  };
  expect(bodyOf(given, [])).toEqual({
    agent: "coder",
    max_turns: 20,
    priority: -3,
    job_timeout: "30m",
    limits: { spend: "2" },
  });
});

it("says what is missing", () => {
  expect(missingOf(EMPTY_FORM, true)).toBe("Choose an agent");
  expect(missingOf(form, false)).toBe("Write a prompt");
  expect(missingOf(form, true)).toBeNull();
  expect(missingOf({ ...form, choice: "resume" }, true)).toBe("Choose a session");
  expect(missingOf({ ...form, choice: "channel" }, true)).toBe("Name a channel");
});
