import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import type { ItemDocument } from "../api/types";
import { Button } from "../ui/Button";
import { Badge } from "../ui/Status";
import { Ago, useNow } from "../ui/time";
import { AnswerForm } from "./AnswerForm";
import { Artifact } from "./Artifact";
import { askedOf } from "./asked";
import { AskedView } from "./AskedView";
import { History, Outcome } from "./Outcome";
import { ItemFacts } from "./ItemFacts";
import { useAnswer } from "./use_answer";
import { effectsOf, expiryText, KIND_NAMES } from "./verdicts";

/** One item with everything needed to decide, and the answer. */
export function ItemPanel({
  item,
  hasKeys = false,
  isInJob = false,
}: {
  item: ItemDocument;
  hasKeys?: boolean;
  /** Whether it is shown on the page of its job, which says the rest. */
  isInJob?: boolean;
}) {
  // What the person was shown: an answer counts for exactly that.
  const [seen, setSeen] = useState(item.hash);
  const hasChanged = item.hash !== seen;
  const { answer, conflict } = useAnswer(item, seen);
  const asked = useMemo(() => askedOf(item), [item]);
  const isWaiting = item.status === "pending";
  // What is short is its own title.
  const isSaid =
    (asked.kind === "gate" && asked.summary === item.title) ||
    (asked.kind === "question" && asked.question === item.title) ||
    (asked.kind === "error" && asked.message === item.title);
  return (
    <article aria-label={item.title} className="flex flex-col gap-4">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Badge tone={item.kind === "failure" ? "bad" : "wait"} text={KIND_NAMES[item.kind]} />
        <h2 className="w-full text-base font-semibold [overflow-wrap:anywhere]">{item.title}</h2>
        <p className="text-sm text-soft">
          asked <Ago at={item.created_at} />
          {isWaiting && <Expiry item={item} />}
        </p>
        {isInJob && (
          <Link
            to={`/inbox/${item.id}`}
            className="ml-auto py-1 text-sm text-accent hover:underline"
          >
            open in the inbox
          </Link>
        )}
      </header>
      {hasChanged && isWaiting && (
        <div role="alert" className="flex flex-wrap items-center gap-3 rounded-md bg-wait-soft p-3">
          <p className="text-sm text-wait">What is asked has changed since you looked at it.</p>
          <Button onClick={() => setSeen(item.hash)}>I have looked again</Button>
        </div>
      )}
      {conflict !== null && (
        <p role="alert" className="rounded-md bg-wait-soft p-3 text-sm text-wait">
          Your answer did not count: {conflict}
        </p>
      )}
      {!isWaiting && <Outcome item={item} />}
      {isSaid || <AskedView asked={asked} id={item.id} />}
      {item.artifact !== null && <Artifact artifact={item.artifact} id={item.id} />}
      {!isInJob && <ItemFacts item={item} />}
      {isWaiting && !hasChanged && (
        <AnswerForm
          item={item}
          asked={asked}
          onAnswer={(given) => answer.mutate(given)}
          isBusy={answer.isPending}
          hasKeys={hasKeys}
        />
      )}
      {isWaiting && <Effects item={item} />}
      <History answers={item.answers} />
    </article>
  );
}

function Expiry({ item }: { item: ItemDocument }) {
  const text = expiryText(item, useNow());
  return text === null ? null : <span className="text-wait"> · {text}</span>;
}

function Effects({ item }: { item: ItemDocument }) {
  return (
    <section aria-label="What happens" className="text-sm">
      <h3 className="mb-1 text-xs font-semibold tracking-wide text-faint uppercase">
        What happens
      </h3>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-0.5">
        {effectsOf(item).map(({ verdict, effect }) => (
          <div key={verdict} className="contents">
            <dt className="text-soft">{verdict}</dt>
            <dd className="[overflow-wrap:anywhere]">{effect}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
