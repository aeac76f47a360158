import { Link } from "@tanstack/react-router";
import { memo, useState, type ReactNode } from "react";

import { classes } from "../ui/classes";
import { notifyError } from "../shell/toasts";
import { formatSize } from "../transcript/results";
import type { ToolItem } from "../transcript/items";
import { Markdown } from "../transcript/Markdown";
import { ToolBody } from "../transcript/tool_bodies";
import { callTitle, toolView } from "../transcript/tools";
import { useToggle } from "../transcript/toggles";
import { timeText } from "../ui/time";
import { cutBytes, type Entry } from "./conversation";

const SPEAKERS = { user: "asked", assistant: "agent", tool: "tool" };

/** A message of a conversation; calls of tools are closed at first. */
export const MessageView = memo(function MessageView({
  entry,
  isInherited,
  isNamed = false,
  to,
  id = `message-${entry.message.message}`,
  onExpand,
  action,
}: {
  entry: Entry;
  /** Whether it was said before this session was forked. */
  isInherited: boolean;
  /** Whether the address names it. */
  isNamed?: boolean;
  /** The page of its session. */
  to: string;
  id?: string;
  /** Loads the rest of a message that was cut; without it, the message's own page does. */
  onExpand?: (number: number) => Promise<void>;
  action?: (number: number) => ReactNode;
}) {
  const { message, tools } = entry;
  const isTool = message.speaker === "tool";
  return (
    <li
      id={id}
      data-row={message.message}
      className={classes(
        "flex flex-col gap-1 rounded-md border px-3 py-2 [content-visibility:auto]",
        message.speaker === "user" ? "border-line bg-accent-soft" : "border-line bg-panel",
        isInherited && "border-dashed",
        isNamed && "ring-2 ring-accent",
      )}
    >
      <p className="flex flex-wrap items-center gap-x-2 text-xs text-faint">
        <Link
          to={to}
          hash={String(message.message)}
          data-row-link
          className="inline-flex min-h-11 items-center font-mono hover:underline md:min-h-0"
        >
          #{message.message}
        </Link>
        {SPEAKERS[message.speaker]}
        {isInherited && <span>· before the fork</span>}
        {message.timestamp !== null && (
          <time dateTime={message.timestamp}>{timeText(message.timestamp)}</time>
        )}
        <Link
          to={`/jobs/${message.job_id}`}
          hash={String(message.seq)}
          className="inline-flex min-h-11 items-center hover:underline md:min-h-0"
        >
          in its job
        </Link>
        <span className="ml-auto">{action?.(message.message)}</span>
      </p>
      {!isTool && message.text !== "" && <Markdown text={message.text} />}
      {tools.map((item) => (
        <Tool key={item.key} item={item} />
      ))}
      <Rest
        size={cutBytes(message)}
        {...(onExpand !== undefined && { onExpand: () => onExpand(message.message) })}
      />
    </li>
  );
});

function Tool({ item }: { item: ToolItem }) {
  const [isOpen, toggle] = useToggle(item.key);
  const view = toolView(item);
  const outcome = item.result === null ? "no result yet" : item.isError ? "failed" : "";
  return (
    <div>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={toggle}
        className="flex min-h-11 w-full items-center gap-2 text-left text-sm md:min-h-7"
      >
        <span aria-hidden className="w-3 shrink-0 text-faint">
          {isOpen ? "▾" : "▸"}
        </span>
        <span className="shrink-0 font-medium">{item.call?.tool_name ?? "Result"}</span>
        <span className="min-w-0 truncate font-mono text-xs text-soft">{callTitle(item)}</span>
        <span
          className={classes("ml-auto shrink-0 text-xs", item.isError ? "text-bad" : "text-faint")}
        >
          {outcome}
        </span>
      </button>
      {isOpen && (
        <div className="pl-5">
          <ToolBody item={item} view={view} />
        </div>
      )}
    </div>
  );
}

/** Says that the page has only the beginning of a message, and loads the rest. */
function Rest({ size, onExpand }: { size: number; onExpand?: () => Promise<void> }) {
  const [isLoading, setLoading] = useState(false);
  if (size === 0) return null;
  if (onExpand === undefined)
    return <p className="text-xs text-faint">{formatSize(size)} in all</p>;
  const load = () => {
    setLoading(true);
    onExpand()
      .catch(notifyError)
      .finally(() => setLoading(false));
  };
  return (
    <p className="text-xs text-faint">
      {formatSize(size)} in all ·{" "}
      <button type="button" disabled={isLoading} onClick={load} className="text-accent underline">
        Show all
      </button>
    </p>
  );
}
