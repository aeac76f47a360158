import { useQuery } from "@tanstack/react-query";

import { get } from "../api/client";
import type { Schemas, SessionRow } from "../api/types";
import { resumeCommand } from "../sessions/documents";
import { notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { copyText } from "../ui/copy";
import type { JobDocument } from "./documents";

/** Copies the command that continues the session by hand, in the directory where its files are. */
export function CopyResume({ job }: { job: JobDocument }) {
  const session = useQuery({
    queryKey: ["session", job.session_id],
    queryFn: ({ signal }) =>
      get<SessionRow>(`/sessions/${job.session_id ?? ""}`, undefined, signal),
    enabled: job.session_id !== null,
  });
  const workspace = useWorkspace(job);
  if (session.data === undefined) return null;
  const directory = workspace.data?.directory ?? session.data.working_directory;
  const command = resumeCommand({ ...session.data, working_directory: directory });
  if (command === null) return null;
  return (
    <Button
      look="ghost"
      className="min-h-10 md:min-h-8"
      title={command}
      onClick={() => void copyText(command).catch(notifyError)}
    >
      Copy claude --resume
    </Button>
  );
}

/** The workspace of a job as it is now: where it is, and what it holds. */
export function useWorkspace(job: JobDocument) {
  const id = job.workspace_id;
  return useQuery({
    queryKey: ["workspace", id],
    queryFn: ({ signal }) =>
      get<Schemas["WorkspaceDocument"]>(
        `/workspaces/${encodeURIComponent(id ?? "")}`,
        undefined,
        signal,
      ),
    enabled: id !== null,
    meta: { live: ["job"] },
    retry: false,
  });
}
