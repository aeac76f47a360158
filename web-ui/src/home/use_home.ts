import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useEffectEvent } from "react";

import { get, post } from "../api/client";
import type { Schemas } from "../api/types";
import { useIsOnline } from "../live/live";
import type { Home } from "./live_rows";

/** Signs of life of running jobs are in no row: while one runs, they are asked for. */
const LOOK_MS = 5_000;
const VISIT_MS = 5 * 60_000;

/** What happened since the person last looked, or since a time; and what goes on now. */
export function useHome(since: string) {
  const isOnline = useIsOnline();
  const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return useQuery({
    queryKey: ["home", since],
    queryFn: ({ signal }) => get<Home>("/home", { since, tz: timezone }, signal),
    refetchInterval: ({ state }) =>
      isOnline && (state.data?.running.count ?? 0) > 0 ? LOOK_MS : false,
    meta: { live: ["job", "inbox", "run", "schedule"] },
  });
}

/** Say that the person is here, as long as the page is looked at: what happens later is new at the next visit. */
export function useVisit(): void {
  const visit = useMutation({ mutationFn: () => post<Schemas["VisitDocument"]>("/visit") });
  const mark = useEffectEvent(() => {
    if (document.visibilityState === "visible") visit.mutate();
  });
  useEffect(() => {
    mark();
    const timer = setInterval(mark, VISIT_MS);
    return () => clearInterval(timer);
  }, []);
}
