import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { request, type Envelope } from "../api/client";
import type { SessionRow } from "../api/types";
import { useActing } from "../shell/acting";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";

type Imported = Envelope<SessionRow> & { is_new: boolean };

/** Takes an exported session into the fleet, with its jobs; then it can be continued here. */
export function ImportSession({ file, onDone }: { file: File; onDone: () => void }) {
  const acting = useActing("admin");
  const client = useQueryClient();
  const navigate = useNavigate();
  const take = useMutation({
    mutationFn: () => request<Imported>("/sessions/import/file", { method: "POST", body: file }),
    onSuccess: ({ data, is_new: isNew }) => {
      void client.invalidateQueries({ queryKey: ["sessions"] });
      notify(isNew ? "imported" : "it is here already");
      onDone();
      void navigate({ to: `/sessions/${data.id}` });
    },
    onError: notifyError,
  });
  return (
    <Button
      look="primary"
      title={acting.title}
      disabled={acting.disabled || take.isPending}
      onClick={() => take.mutate()}
    >
      Import the session
    </Button>
  );
}
