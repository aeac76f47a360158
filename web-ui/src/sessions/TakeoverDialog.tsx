import { Link } from "@tanstack/react-router";

import { messageOf } from "../api/problem";
import { useActing } from "../shell/acting";
import { notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { copyText } from "../ui/copy";
import { Dialog } from "../ui/Dialog";
import { messagesText } from "./documents";
import type { SessionActs } from "./use_session_acts";

/** Hand the session over to a person, who continues it in the agent's own program, and take it back afterwards. */
export function TakeoverDialog({ acts, onClose }: { acts: SessionActs; onClose: () => void }) {
  const acting = useActing();
  const { takeover } = acts;
  const handed = takeover.data;
  return (
    <Dialog title="Continue the session by hand" onClose={onClose}>
      <div className="flex flex-col gap-3 p-4 text-sm">
        <p>
          You continue it in a terminal on the fleet&apos;s machine. Nothing may run in it
          meanwhile. Take it back afterwards: what was said becomes a job here.
        </p>
        {takeover.isError && (
          <p role="alert" className="wrap-anywhere text-bad">
            {messageOf(takeover.error)}
          </p>
        )}
        {handed !== undefined && (
          <div role="status" className="flex flex-col gap-2 rounded-md bg-raised p-3">
            <code className="font-mono text-xs wrap-anywhere">{handed.shell}</code>
            {handed.was_in_container && (
              <p>Its agent worked in a container; this runs on the machine itself.</p>
            )}
            <p>
              {handed.recorded_job_id === null ? (
                "Nothing was said outside nightherd so far."
              ) : (
                <>
                  {messagesText(handed.recorded_messages)} said outside nightherd are recorded as{" "}
                  <Link
                    to={`/jobs/${handed.recorded_job_id}`}
                    className="font-mono text-xs text-accent underline"
                  >
                    {handed.recorded_job_id}
                  </Link>
                  .
                </>
              )}
            </p>
            <Button
              className="min-h-10 self-start md:min-h-8"
              onClick={() => void copyText(handed.shell).catch(notifyError)}
            >
              Copy the command
            </Button>
          </div>
        )}
        <Button
          look={handed === undefined ? "primary" : "plain"}
          className="min-h-10 self-end md:min-h-8"
          title={acting.title}
          disabled={acting.disabled || takeover.isPending}
          onClick={() => takeover.mutate()}
        >
          {handed === undefined ? "Hand over" : "Take back"}
        </Button>
      </div>
    </Dialog>
  );
}
