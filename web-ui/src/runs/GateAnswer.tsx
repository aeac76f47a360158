import { Link } from "@tanstack/react-router";

import type { ItemDocument } from "../api/types";
import { AnswerForm } from "../inbox/AnswerForm";
import { Artifact } from "../inbox/Artifact";
import { askedOf } from "../inbox/asked";
import { AskedView } from "../inbox/AskedView";
import { useAnswer } from "../inbox/use_answer";
import { useItem } from "../inbox/use_inbox";
import { Failure, Loading } from "../ui/Page";
import { Ago } from "../ui/time";

/** The inbox item of a phase: what is asked, and the answer, given here or there. */
export function GateAnswer({ id }: { id: string }) {
  const item = useItem(id);
  if (item.isPending) return <Loading />;
  if (item.isError) return <Failure error={item.error} retry={() => void item.refetch()} />;
  return item.data.status === "pending" ? (
    <Pending key={item.data.hash} item={item.data} />
  ) : (
    <Decided item={item.data} />
  );
}

function Pending({ item }: { item: ItemDocument }) {
  const { answer, conflict } = useAnswer(item, item.hash);
  const asked = askedOf(item);
  return (
    <section aria-label="Asked" className="flex flex-col gap-3 text-ink">
      <AskedView asked={asked} id={item.id} />
      {item.artifact !== null && <Artifact artifact={item.artifact} id={item.id} />}
      <AnswerForm
        item={item}
        asked={asked}
        isBusy={answer.isPending}
        hasKeys={false}
        onAnswer={(given) => answer.mutate(given)}
      />
      {conflict !== null && (
        <p role="alert" className="text-bad">
          {conflict}
        </p>
      )}
      <Link to={`/inbox/${item.id}`} className="self-start text-xs text-accent underline">
        Open in the inbox
      </Link>
    </section>
  );
}

function Decided({ item }: { item: ItemDocument }) {
  const text = item.answers.at(-1)?.text ?? item.reply;
  return (
    <section aria-label="Answer" className="text-soft">
      <p>
        {item.verdict ?? item.status} by {item.decided_by ?? "nobody"}
        {item.decided_via !== null && ` (${item.decided_via})`}{" "}
        {item.decided_at !== null && <Ago at={item.decided_at} />}
      </p>
      {text !== null && <p className="[overflow-wrap:anywhere] whitespace-pre-wrap">{text}</p>}
    </section>
  );
}
