import { expect, it } from "vitest";

import { problemsByInput, readInputs, specsOf, typedOf, type InputSpec } from "./run_inputs";

function spec(type: InputSpec["type"], given: Partial<InputSpec> = {}): InputSpec {
  return { type, required: false, default: null, description: "", ...given };
}

it("reads what is typed as the declared types", () => {
  const specs = {
    title: spec("text"),
    count: spec("number"),
    dry: spec("boolean"),
    names: spec("list"),
    options: spec("object"),
    left: spec("text"),
  };
  const typed = {
    title: "7",
    count: "2.5",
    dry: "false",
    names: "cow\n\n pig \n",
    options: '{"deep": [1]}',
    left: " ",
  };
  expect(readInputs(specs, typed)).toEqual({
    values: { title: "7", count: 2.5, dry: false, names: ["cow", "pig"], options: { deep: [1] } },
    problems: {},
  });
});

it("says what is wrong with each input", () => {
  const specs = {
    title: spec("text", { required: true }),
    count: spec("number"),
    names: spec("list"),
    options: spec("object"),
  };
  const { values, problems } = readInputs(specs, { count: "two", names: "[1,", options: "[1]" });
  expect(values).toEqual({});
  expect(Object.keys(problems)).toEqual(["title", "count", "names", "options"]);
  expect(problems["title"]).toBe("It is required.");
});

it("asks for nothing where a default counts", () => {
  const specs = { title: spec("text", { required: true, default: "cow" }) };
  expect(readInputs(specs, {})).toEqual({ values: {}, problems: {} });
});

it("writes values so that they are read as they were", () => {
  const values = {
    text: "two\nlines",
    number: 2.5,
    yes: true,
    texts: ["a", "b"],
    odd: ["[a", "b"],
    empty: [],
    mixed: [1, "a"],
    object: { a: null },
  };
  const typed = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typedOf(value)]),
  );
  expect(readInputs(specsOf(values), typed)).toEqual({ values, problems: {} });
  expect(typedOf(null)).toBe("");
});

it("puts what the server says beside the input that it names", () => {
  const message =
    "workflow 'build': the input 'idea' is required; the input 'guests': expected a number, got a text";
  expect(problemsByInput(message, ["idea", "guests", "dry"])).toEqual({
    idea: "the input 'idea' is required",
    guests: "the input 'guests': expected a number, got a text",
  });
  expect(problemsByInput("workflow 'build' was switched off by ada", ["idea"])).toEqual({});
});
