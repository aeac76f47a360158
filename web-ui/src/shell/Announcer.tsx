import { useState } from "react";

import type { ItemRow, JobRow } from "../api/types";
import { useLiveEvents } from "../live/live";

/** Says important changes to screen readers. */
export function Announcer() {
  const [text, setText] = useState("");
  useLiveEvents<JobRow>("job", (job) => {
    if (job.status === "failed") setText(`Job of ${job.agent} failed`);
    else if (job.status === "completed") setText(`Job of ${job.agent} completed`);
  });
  useLiveEvents<ItemRow>("inbox", (item) => {
    if (item.status === "pending") setText(`Waits for you: ${item.title}`);
  });
  return (
    <p role="status" aria-live="polite" className="sr-only">
      {text}
    </p>
  );
}
