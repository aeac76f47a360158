import { Link } from "@tanstack/react-router";

import { Button } from "../ui/Button";

/** What can be done where a suspended job holds the session: look at it, run beside it, or queue behind it. */
export function HeldSession({
  message,
  holder,
  isBusy,
  onBranch,
  onWait,
  onClose,
}: {
  message: string;
  holder: string;
  isBusy: boolean;
  onBranch: () => void;
  onWait: () => void;
  onClose: () => void;
}) {
  return (
    <div role="alert" className="flex flex-col gap-2 rounded-md bg-wait-soft p-3 text-sm">
      <p className="[overflow-wrap:anywhere] text-wait">{message}</p>
      <div className="flex flex-wrap gap-2">
        <Button className="min-h-10 md:min-h-8" disabled={isBusy} onClick={onBranch}>
          Run in a branch
        </Button>
        <Button className="min-h-10 md:min-h-8" disabled={isBusy} onClick={onWait}>
          Queue behind it
        </Button>
        {holder !== "" && (
          <Link
            to={`/jobs/${holder}`}
            onClick={onClose}
            className="inline-flex min-h-10 items-center px-2 text-accent underline md:min-h-8"
          >
            Look at the job
          </Link>
        )}
      </div>
    </div>
  );
}
