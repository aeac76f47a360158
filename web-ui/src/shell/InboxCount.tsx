import { useQuery } from "@tanstack/react-query";

import { get } from "../api/client";
import type { StatusDocument } from "../api/types";

/** How many items wait for a person. */
export function InboxCount() {
  const status = useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => get<StatusDocument>("/status", undefined, signal),
    meta: { live: ["inbox"] },
  });
  const waiting = status.data?.inbox.waiting ?? 0;
  if (waiting === 0) return null;
  return (
    <span className="rounded-full bg-wait-soft px-1.5 text-xs font-semibold text-wait md:ml-auto">
      {waiting}
      <span className="sr-only"> waiting</span>
    </span>
  );
}
