import { memo } from "react";

import { classes } from "../ui/classes";
import { spanText } from "../ui/time";
import { CutNote, ItemFrame } from "./ItemFrame";
import type { AnswerItem, EndItem, ErrorItem, GapItem, Item, NoticeItem, WaitItem } from "./items";
import { LongText } from "./LongText";
import { Markdown } from "./Markdown";
import { SubagentCard, ToolCard } from "./ToolCard";
import { useToggle } from "./toggles";

/** One item of a transcript. */
export const ItemView = memo(
  function ItemView({ item }: { item: Item }) {
    return (
      <>
        {item.startsTurn && (
          <h2 className="flex items-center gap-2 pt-3 pb-1 text-xs font-medium text-faint">
            Turn {item.turn}
            <span aria-hidden className="h-px grow bg-line" />
          </h2>
        )}
        {shown(item)}
      </>
    );
  },
  (before, after) =>
    before.item.key === after.item.key && before.item.revision === after.item.revision,
);

function shown(item: Item) {
  switch (item.kind) {
    case "prompt":
      return (
        <ItemFrame item={item} tone="user">
          <p className="text-xs text-faint">
            {item.by === "hand" ? "asked outside nightherd" : "asked"}
          </p>
          <Markdown text={item.text} />
          <CutNote event={item.event} />
        </ItemFrame>
      );
    case "answer":
      return <Answer item={item} />;
    case "live":
      return (
        <ItemFrame item={item} tone="none">
          <div aria-live="off" data-live>
            <Markdown text={item.text} />
          </div>
        </ItemFrame>
      );
    case "tool":
      return <ToolCard item={item} />;
    case "subagent":
      return <SubagentCard item={item} />;
    case "gap":
      return <Gap item={item} />;
    case "wait":
      return <Wait item={item} />;
    case "notice":
      return <Notice item={item} />;
    case "error":
      return <Failed item={item} />;
    case "end":
      return <End item={item} />;
    case "unknown":
      return (
        <ItemFrame item={item} tone="plain">
          <LongText id={item.key} text={JSON.stringify(item.event, null, 2)} />
        </ItemFrame>
      );
  }
}

function Answer({ item }: { item: AnswerItem }) {
  const [isOpen, toggle] = useToggle(`${item.key}:thinking`);
  return (
    <ItemFrame item={item} tone="none">
      {item.thinking && (
        <div className="pb-1">
          <button
            type="button"
            aria-expanded={isOpen}
            onClick={toggle}
            className="text-xs text-faint"
          >
            {isOpen ? "▾" : "▸"} thinking
          </button>
          {isOpen && (
            <div className="border-l-2 border-line pl-3 text-soft italic">
              <Markdown text={item.thinking} />
            </div>
          )}
        </div>
      )}
      <Markdown text={item.text} />
      {item.isCutOff && <p className="text-xs text-wait">The answer was cut off here.</p>}
      <CutNote event={item.event} />
    </ItemFrame>
  );
}

const REASONS: Record<string, string> = {
  crash: "No worker: it was lost",
  handover: "No worker: it handed the job over",
  limit: "Waited at a limit",
  budget: "Waited for budget",
  rate_limit: "Waited for a rate limit",
  approval: "Waited for a person",
  error: "Waited after an error",
  resumed: "Waited to be resumed",
  unknown: "No worker",
};

function Gap({ item }: { item: GapItem }) {
  const seconds =
    item.from === null || item.to === null
      ? null
      : (Date.parse(item.to) - Date.parse(item.from)) / 1000;
  return (
    <ItemFrame item={item} tone="none">
      <div
        data-gap={item.reason}
        className="hatched rounded-md border border-line px-3 py-1.5 text-sm"
      >
        <span className="font-medium">
          {REASONS[item.reason] ?? item.reason}
          {seconds !== null && ` for ${spanText(seconds)}`}
        </span>
        {item.text && <span className="text-soft">: {item.text}</span>}
        {item.worker !== null && <span className="text-faint"> · continued by {item.worker}</span>}
      </div>
    </ItemFrame>
  );
}

function Wait({ item }: { item: WaitItem }) {
  return (
    <ItemFrame item={item} tone="wait">
      <p className="text-sm">
        <span className="font-medium">Suspended: {item.reason.replaceAll("_", " ")}</span>
        {item.code !== null && <span className="text-soft"> ({item.code})</span>}
        {item.text && <span> · {item.text}</span>}
        {item.resumedAt === null && item.until !== null && (
          <span className="text-soft"> · until {new Date(item.until).toLocaleString()}</span>
        )}
      </p>
    </ItemFrame>
  );
}

const SEVERITIES = { info: "text-faint", warning: "text-wait", bad: "text-bad" };

function Notice({ item }: { item: NoticeItem }) {
  return (
    <ItemFrame item={item} tone="dense">
      <p
        className={classes(
          "truncate text-xs hover:whitespace-normal",
          SEVERITIES[item.severity],
          item.isQuiet && "opacity-80",
        )}
      >
        <span className="font-medium">{item.label}</span>
        {item.text && `: ${item.text}`}
      </p>
      <CutNote event={item.event} />
    </ItemFrame>
  );
}

function Failed({ item }: { item: ErrorItem }) {
  return (
    <ItemFrame item={item} tone="bad">
      <p className="text-sm font-medium [overflow-wrap:anywhere] whitespace-pre-wrap text-bad">
        {item.event.code ? `error (${item.event.code}): ` : "error: "}
        {item.event.message}
      </p>
      {item.event.stack && <LongText id={`${item.key}:stack`} text={item.event.stack} />}
      <CutNote event={item.event} />
    </ItemFrame>
  );
}

function End({ item }: { item: EndItem }) {
  const isGood = item.status === "completed";
  return (
    <ItemFrame item={item} tone="none">
      <p className={classes("text-sm font-medium", isGood ? "text-good" : "text-bad")}>
        {item.status} <span className="text-faint">({item.exitReason})</span>
      </p>
    </ItemFrame>
  );
}
