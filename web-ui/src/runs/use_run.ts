import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { get } from "../api/client";
import type { Schemas } from "../api/types";
import { withDeclared } from "../graph/declared_rest";
import { phasesOfDefinition } from "../graph/from_definition";
import { phasesOfRun } from "../graph/from_run";
import type { Phase } from "../graph/phase";
import { useTopic } from "../live/live";
import { runPath, type RunDocument } from "./documents";

export type Definition = Schemas["WorkflowDefinition"];

/** One run, kept current by the stream. */
export function useRun(reference: string) {
  const run = useQuery({
    queryKey: ["run", reference],
    queryFn: ({ signal }) => get<RunDocument>(runPath(reference), undefined, signal),
    // A change of a phase is a change of its run; the topic of the run adds its phases and jobs.
    meta: { live: ["run", "node"] },
  });
  // An address may have a prefix or `@last`; the stream takes the whole id.
  const id = run.data?.id ?? null;
  useTopic(id === null ? null : `run:${id}`);
  return run;
}

/** The definition that a run keeps; null until it is there, and for an imported run without one. */
export function useDefinition(run: RunDocument): Definition | null {
  const definition = useQuery({
    queryKey: ["run-definition", run.id],
    queryFn: ({ signal }) => get<Definition>(`${runPath(run.id)}/definition`, undefined, signal),
    enabled: run.definition_hash !== null,
    staleTime: Infinity,
    retry: false,
  });
  return definition.data ?? null;
}

/** The phases of a run, with those inside groups that it has not come to. */
export function usePhases(run: RunDocument, asOf: number, definition: Definition | null): Phase[] {
  return useMemo(() => {
    const phases = phasesOfRun(run.nodes, asOf);
    return definition === null
      ? phases
      : withDeclared(phases, phasesOfDefinition(definition.phases));
  }, [run, asOf, definition]);
}
