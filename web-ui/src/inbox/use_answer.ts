import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { post } from "../api/client";
import { ApiProblem, messageOf } from "../api/problem";
import type { ItemDocument, Schemas } from "../api/types";
import { notify, notifyError } from "../shell/toasts";
import { VERDICT_DONE, type Verdict } from "./verdicts";

export type GivenAnswer = Partial<Omit<Schemas["NewAnswer"], "seen_hash">> & { verdict: Verdict };

export function itemPath(item: string): string {
  return `/inbox/${encodeURIComponent(item)}`;
}

/** Answers an item as it was shown. Where somebody was first, or it has changed, the item is fetched again. */
export function useAnswer(item: Pick<ItemDocument, "id">, seenHash: string) {
  const client = useQueryClient();
  const [conflict, setConflict] = useState<string | null>(null);
  const answer = useMutation({
    mutationFn: (given: GivenAnswer) =>
      post<ItemDocument>(`${itemPath(item.id)}/answers`, {
        ...given,
        ...(seenHash !== "" && { seen_hash: seenHash }),
      }),
    onMutate: () => setConflict(null),
    onSuccess: (answered, { verdict }) => {
      client.setQueryData(["inbox-item", item.id], answered);
      const waits = verdict === "approve" && answered.status === "pending";
      notify(waits ? "approved; more people have to" : VERDICT_DONE[verdict]);
    },
    onError: (error) => {
      // Where the item leaves the page, the message in its place goes with it.
      if (error instanceof ApiProblem && error.status === 409) setConflict(messageOf(error));
      notifyError(error);
    },
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ["inbox-item", item.id] });
      void client.invalidateQueries({ queryKey: ["inbox"] });
      void client.invalidateQueries({ queryKey: ["home"] });
      void client.invalidateQueries({ queryKey: ["status"] });
    },
  });
  return { answer, conflict };
}
