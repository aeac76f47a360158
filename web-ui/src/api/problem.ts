/** Errors of the API: problem documents, with what to do about them. */

import type { components } from "./schema";

export type ProblemDocument = components["schemas"]["ProblemDocument"];
export type NextStep = components["schemas"]["NextStepRow"];

/** A request that the API refused. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | null;
  /** What else can be done, the most likely first. */
  readonly steps: readonly NextStep[];

  constructor(
    status: number,
    code: string,
    detail: string,
    hint: string | null = null,
    steps: readonly NextStep[] = [],
  ) {
    super(detail);
    this.name = "ApiProblem";
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.steps = steps;
  }
}

/** Return the problem that an answer describes. */
export async function problemOf(response: Response): Promise<ApiProblem> {
  try {
    const document = (await response.json()) as Partial<ProblemDocument>;
    const detail = document.detail ?? document.title ?? `status ${response.status}`;
    const steps = [document.next, ...(document.alternatives ?? [])].filter((step) => step != null);
    return new ApiProblem(
      response.status,
      document.code ?? "",
      detail,
      document.hint ?? null,
      steps,
    );
  } catch {
    return new ApiProblem(response.status, "", `the server answered with ${response.status}`);
  }
}

/** Return an error as a sentence for people, with what to do where that is known. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiProblem) {
    return error.hint === null ? error.message : `${error.message} (${error.hint})`;
  }
  if (error instanceof TypeError) return "the daemon does not answer";
  return error instanceof Error ? error.message : String(error);
}
