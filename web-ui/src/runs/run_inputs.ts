/** Inputs of workflows as people type them: texts become the values that the workflow declares. */

import type { Schemas } from "../api/types";

export type InputSpec = Schemas["InputSpec"];
export type Specs = Readonly<Record<string, InputSpec>>;
/** What is typed, by input. An empty text is no value: the default counts. */
export type Typed = Readonly<Record<string, string>>;

export interface ReadInputs {
  values: Record<string, unknown>;
  /** What is wrong, by input. */
  problems: Record<string, string>;
}

/** Return the values of what was typed, and what is wrong with it. Inputs that are left empty are left out. */
export function readInputs(specs: Specs, typed: Typed): ReadInputs {
  const read: ReadInputs = { values: {}, problems: {} };
  for (const [name, spec] of Object.entries(specs)) {
    const text = typed[name] ?? "";
    if (text.trim() === "") {
      if (spec.required && spec.default === null) read.problems[name] = "It is required.";
      continue;
    }
    const found = readValue(spec, text);
    if ("problem" in found) read.problems[name] = found.problem;
    else read.values[name] = found.value;
  }
  return read;
}

type Found = { value: unknown } | { problem: string };

function readValue({ type }: InputSpec, text: string): Found {
  switch (type) {
    case "text":
      return { value: text };
    case "number": {
      const value = Number(text);
      return Number.isFinite(value) ? { value } : { problem: "It is not a number." };
    }
    case "boolean":
      return text === "true" || text === "false"
        ? { value: text === "true" }
        : { problem: "It is true or false." };
    case "list":
      return readList(text);
    case "object":
      return readJson(text, 'an object such as {"name": 1}', isObject);
  }
}

/** A list is JSON, or one text on each line. */
function readList(text: string): Found {
  if (text.trim().startsWith("[")) {
    return readJson(text, "a list such as [1, 2], or one text on each line", Array.isArray);
  }
  const lines = text.split("\n").map((line) => line.trim());
  return { value: lines.filter((line) => line !== "") };
}

function readJson(text: string, kind: string, isRight: (value: unknown) => boolean): Found {
  try {
    const value: unknown = JSON.parse(text);
    return isRight(value) ? { value } : { problem: `It is not ${kind}.` };
  } catch {
    return { problem: `It is not ${kind}.` };
  }
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Return a value as it is typed. */
export function typedOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  const isTexts = Array.isArray(value) && value.every((one) => isLine(one));
  if (isTexts && value.length > 0) return value.join("\n");
  return typeof value === "object" ? JSON.stringify(value, null, 2) : JSON.stringify(value);
}

function isLine(value: unknown): boolean {
  return typeof value === "string" && !value.includes("\n") && !value.trim().startsWith("[");
}

/** Return what of the server's answer is about which input: it names inputs as `the input 'NAME'`. */
export function problemsByInput(message: string, names: readonly string[]): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const part of message.split("; ")) {
    const name = names.find((one) => part.includes(`input '${one}'`));
    if (name !== undefined) problems[name] ??= part.replace(/^workflow '[^']*': /, "");
  }
  return problems;
}

/** Guess what inputs are whose workflow is gone: from the values that a run has. */
export function specsOf(values: Readonly<Record<string, unknown>>): Specs {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const type = Array.isArray(value)
        ? "list"
        : typeof value === "number" || typeof value === "boolean"
          ? (typeof value as "number" | "boolean")
          : isObject(value)
            ? "object"
            : "text";
      return [name, { type, required: false, default: null, description: "" }];
    }),
  );
}
