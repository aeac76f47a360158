import { lazy, Suspense, useState } from "react";

import { useActing } from "../shell/acting";
import { Button } from "../ui/Button";

const StartJob = lazy(() => import("./StartJob"));

/** Opens the window that starts a job. */
export function StartButton({ agent, name = "Start a job" }: { agent?: string; name?: string }) {
  const [isOpen, setOpen] = useState(false);
  const acting = useActing();
  return (
    <>
      <Button
        look="primary"
        className="min-h-10 md:min-h-8"
        {...acting}
        onClick={() => setOpen(true)}
      >
        {name}
      </Button>
      <Suspense>
        {isOpen && (
          <StartJob onClose={() => setOpen(false)} {...(agent !== undefined && { agent })} />
        )}
      </Suspense>
    </>
  );
}
