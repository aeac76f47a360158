import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { get, getPage, post } from "../api/client";
import { useIntents } from "../api/intent";
import { ApiProblem } from "../api/problem";
import type { AgentRow, JobRow, Schemas, SessionRow } from "../api/types";
import { LIMIT_NAMES } from "../job/limits";
import { notify } from "../shell/toasts";

/** Agents that jobs can be started for. */
export function useAgents() {
  return useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => get<AgentRow[]>("/agents", undefined, signal),
    meta: { live: ["agent"] },
    select: (agents) => agents.filter((agent) => agent.is_declared),
  });
}

export interface AgentDefaults {
  prompt: string;
  sessionMode: string;
  model: string;
  maxTurns: string;
  limits: Record<string, string>;
}

/** What the fleet file says about jobs of an agent. */
export function useDefaults(agent: string) {
  return useQuery({
    queryKey: ["agent-config", agent],
    queryFn: ({ signal }) =>
      get<Schemas["AgentConfigDocument"]>(
        `/agents/${encodeURIComponent(agent)}/config`,
        undefined,
        signal,
      ),
    enabled: agent !== "",
    select: ({ values }): AgentDefaults => {
      const value = (key: string) => {
        const found: unknown = values.find((row) => row.key === key)?.value;
        return typeof found === "string" || typeof found === "number" ? String(found) : "";
      };
      const limits = LIMIT_NAMES.map(([name]) => [name, value(`limits.${name}`)] as const);
      return {
        limits: Object.fromEntries(limits.filter(([, maximum]) => maximum !== "")),
        prompt: value("default_prompt"),
        sessionMode: value("session.mode"),
        model: value("model"),
        maxTurns: value("max_turns"),
      };
    },
  });
}

const MOST_SESSIONS = 50;

/** The newest sessions of an agent. */
export function useSessions(agent: string, isWanted: boolean) {
  return useQuery({
    queryKey: ["sessions", "of", agent],
    queryFn: ({ signal }) =>
      getPage<SessionRow>("/sessions", { agent, limit: MOST_SESSIONS }, signal),
    enabled: isWanted && agent !== "",
    select: ({ data }) => data,
    meta: { live: ["session"] },
  });
}

export interface StartRequest {
  body: Partial<Schemas["NewJob"]>;
  /** Whether the job is queued where a suspended one holds its session and waits for a person. */
  waits: boolean;
}

/** Starts a job and shows its page. */
export function useStart(onStarted: () => void) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const intents = useIntents();
  return useMutation({
    mutationFn: ({ body, waits }: StartRequest) => {
      const headers = { "If-Held": waits ? "wait" : "refuse" };
      return post<JobRow>("/jobs", body, { key: intents.keyOf(body), headers });
    },
    onSuccess: (job, { body }) => {
      intents.done(body);
      void client.invalidateQueries({ queryKey: ["jobs"] });
      notify(`started a job of ${job.agent}`);
      onStarted();
      void navigate({ to: `/jobs/${job.id}` });
    },
  });
}

/** The suspended job that holds the session, where that is why a start was refused. */
export function holderOf(error: unknown): string | null {
  if (!(error instanceof ApiProblem) || error.status !== 409) return null;
  const isHeld = error.steps.some(({ action }) => action === "run_in_branch");
  return isHeld ? (error.steps.find(({ job }) => job !== undefined)?.job ?? "") : null;
}
