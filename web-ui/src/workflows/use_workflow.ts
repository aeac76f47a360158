import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { get, post } from "../api/client";
import type { Schemas } from "../api/types";
import { notify, notifyError } from "../shell/toasts";

export type Workflow = Schemas["SwitchedWorkflow"];

export function workflowPath(name: string): string {
  return `/workflows/${encodeURIComponent(name)}`;
}

/** One workflow with its definition. A reload of the fleet file changes agents too, so those tell of it. */
export function useWorkflow(name: string) {
  return useQuery({
    queryKey: ["workflow", name],
    queryFn: ({ signal }) => get<Workflow>(workflowPath(name), undefined, signal),
    meta: { live: ["agent"] },
  });
}

/** Enable or disable a workflow; null lets its file count again. */
export function useSwitch(name: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (enabled: boolean | null) =>
      post<Workflow>(workflowPath(name), { enabled }, { method: "PATCH" }),
    onSuccess: (workflow) => {
      client.setQueryData(["workflow", name], workflow);
      void client.invalidateQueries({ queryKey: ["workflows"] });
      notify(`${name} is ${workflow.is_enabled ? "enabled" : "disabled"}.`);
    },
    onError: notifyError,
  });
}
