/** The arguments of a call as fields that a person can change before approving it. */

export interface InputField {
  name: string;
  /** Text is edited as it is, everything else as JSON. */
  kind: "text" | "json";
  text: string;
}

type Input = Record<string, unknown>;

export function fieldsOf(input: Input): InputField[] {
  return Object.entries(input).map(([name, value]) =>
    typeof value === "string"
      ? { name, kind: "text", text: value }
      : { name, kind: "json", text: JSON.stringify(value, null, 2) },
  );
}

export interface ChangedInput {
  /** The arguments to run with; null when they are the agent's own. */
  input: Input | null;
  /** By field, why its text cannot be used. */
  problems: Record<string, string>;
}

/** Return the arguments that the fields spell, and what is wrong with them. */
export function changedInput(original: Input, fields: readonly InputField[]): ChangedInput {
  const problems: Record<string, string> = {};
  const input: Input = {};
  for (const { name, kind, text } of fields) {
    if (kind === "text") {
      input[name] = text;
      continue;
    }
    try {
      input[name] = JSON.parse(text);
    } catch (error) {
      problems[name] = `not JSON: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  const isSame = JSON.stringify(input) === JSON.stringify(original);
  return { input: isSame || Object.keys(problems).length > 0 ? null : input, problems };
}
