import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import type { ItemDocument, ItemRow } from "../api/types";
import { useActing } from "../shell/acting";
import { useMe } from "../shell/session";
import { Button } from "../ui/Button";
import { Badge } from "../ui/Status";
import { Ago } from "../ui/time";
import { askedOf, type Asked } from "./asked";
import { AskedView } from "./AskedView";
import { useAnswer } from "./use_answer";
import { useItem } from "./use_inbox";
import { askerOf, KIND_NAMES } from "./verdicts";

/** An item in a list of another page: calls can be approved or rejected there, with all they would do in view. */
export function QuickAnswer({ row }: { row: ItemRow }) {
  const item = useItem(row.id).data;
  return (
    <div className="flex flex-col gap-2 px-3 py-2.5">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
        <Badge tone={row.kind === "failure" ? "bad" : "wait"} text={KIND_NAMES[row.kind]} />
        <span className="min-w-0 truncate text-xs text-faint">{askerOf(row)}</span>
        <span className="ml-auto text-xs text-faint">
          <Ago at={row.created_at} />
        </span>
      </div>
      <Link
        to={`/inbox/${row.id}`}
        className="flex min-h-10 items-center gap-3 text-sm font-medium [overflow-wrap:anywhere] hover:underline md:min-h-6"
      >
        {row.title}
        <span aria-hidden className="ml-auto text-accent">
          →
        </span>
      </Link>
      {item?.status === "pending" && <Answers item={item} />}
    </div>
  );
}

function Answers({ item }: { item: ItemDocument }) {
  const [seen] = useState(item.hash);
  const { answer, conflict } = useAnswer(item, seen);
  const asked = useMemo(() => askedOf(item), [item]);
  const acting = useActing();
  const me = useMe();
  const mayAnswer = item.approvers.length === 0 || item.approvers.includes(me.name);
  const isShort =
    canAnswerHere(item, asked) || (asked.kind === "question" && asked.options.length > 0);
  const common = {
    className: "min-h-10 md:min-h-8",
    disabled: acting.disabled || answer.isPending || seen !== item.hash || !mayAnswer,
    title: acting.title ?? (mayAnswer ? undefined : `Only ${item.approvers.join(", ")} may answer`),
  };
  return (
    <>
      {asked.kind === "call" && (
        <div
          role="region"
          aria-label={`What ${askerOf(item)} would do`}
          tabIndex={0}
          className="max-h-64 overflow-y-auto"
        >
          <AskedView asked={asked} id={`${item.id}:quick`} />
        </div>
      )}
      {(conflict !== null || seen !== item.hash) && (
        <p role="alert" className="text-sm text-wait">
          {conflict ?? "What is asked has changed: look at it in the inbox."}
        </p>
      )}
      {isShort && (
        <div className="flex flex-wrap gap-2">
          {canAnswerHere(item, asked) ? (
            <>
              <Button
                look="primary"
                {...common}
                aria-label={`Approve ${item.title}`}
                onClick={() => answer.mutate({ verdict: "approve" })}
              >
                Approve
              </Button>
              <Button
                look="danger"
                {...common}
                aria-label={`Reject ${item.title}`}
                onClick={() => answer.mutate({ verdict: "reject" })}
              >
                Reject
              </Button>
            </>
          ) : (
            asked.kind === "question" &&
            asked.options.map((option, place) => (
              <Button
                key={place}
                {...common}
                onClick={() => answer.mutate({ verdict: "reply", text: option })}
              >
                {option}
              </Button>
            ))
          )}
        </div>
      )}
    </>
  );
}

/** Whether all that an approval would do is shown in the list; a gate's artifact is not. */
function canAnswerHere(item: ItemDocument, asked: Asked): boolean {
  return item.kind === "approval" && asked.kind === "call";
}
