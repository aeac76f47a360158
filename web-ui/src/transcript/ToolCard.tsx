import { useMemo } from "react";

import { classes } from "../ui/classes";
import { CutNote, ItemFrame } from "./ItemFrame";
import type { Item, SubagentItem, ToolItem } from "./items";
import { ToolBody } from "./tool_bodies";
import { useToggle } from "./toggles";
import { callTitle, toolView, type ToolView } from "./tools";
import { ItemView } from "./ItemView";

/** Calls that show what they changed are open; others show one line. */
const OPEN: ReadonlySet<ToolView["family"]> = new Set(["bash", "edit", "todo"]);

/** A tool call with its result. */
export function ToolCard({ item }: { item: ToolItem }) {
  const view = useMemo(() => toolView(item), [item]);
  const [isOpen, toggle] = useToggle(item.key, OPEN.has(view.family) || item.isError);
  const name = nameOf(item, view);
  return (
    <ItemFrame item={item} tone={item.isError ? "bad" : "plain"}>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={toggle}
        className="flex w-full items-baseline gap-2 text-left text-sm"
      >
        <span aria-hidden className="w-3 shrink-0 text-faint">
          {isOpen ? "▾" : "▸"}
        </span>
        <span className="shrink-0 font-medium">{name}</span>
        <span className="min-w-0 truncate font-mono text-xs text-soft">{titleOf(item, view)}</span>
        <span
          className={classes("ml-auto shrink-0 text-xs", item.isError ? "text-bad" : "text-faint")}
        >
          {outcomeOf(item, view)}
        </span>
      </button>
      <Reviews item={item} />
      {isOpen && (
        <div className="pt-2 pl-5">
          <ToolBody item={item} view={view} />
          {item.call !== null && <CutNote event={item.call} />}
          {item.result !== null && <CutNote event={item.result} />}
        </div>
      )}
      {item.children.length > 0 && <Nested id={item.key} items={item.children} />}
    </ItemFrame>
  );
}

function nameOf(item: ToolItem, view: ToolView): string {
  if (view.family === "mcp") return `${view.server} · ${view.tool}`;
  if (view.family === "task" && view.agent)
    return `${item.call?.tool_name ?? "Task"} · ${view.agent}`;
  return item.call?.tool_name ?? "Result";
}

function titleOf(item: ToolItem, view: ToolView): string {
  if (view.family === "task") return view.description;
  if (view.family === "bash" && view.description) return view.description;
  if (view.family === "read") return [view.path, view.range].filter((part) => part).join(", ");
  return callTitle(item);
}

function outcomeOf(item: ToolItem, view: ToolView): string {
  if (item.denied !== null) return `denied: ${item.denied}`;
  if (item.result === null) {
    const elapsed = item.progress?.elapsedMs;
    return elapsed ? `running, ${Math.round(elapsed / 1000)} s` : "no result yet";
  }
  if (item.result.success !== false) return "";
  return view.family === "bash" && view.exitCode !== null ? `exit ${view.exitCode}` : "failed";
}

function Reviews({ item }: { item: ToolItem }) {
  return item.reviews.map((review) => (
    <p key={review.seq} className="pl-5 text-xs text-wait">
      {review.status === "pending" ? "waits for a person" : review.status}
      {review.by !== null && ` by ${review.by}`}
      {review.via !== null && ` (${review.via})`}
      {review.input !== undefined && ", with changed arguments"}
    </p>
  ));
}

/** What a subagent did, closed at first. */
export function Nested({ id, items }: { id: string; items: Item[] }) {
  const [isOpen, toggle] = useToggle(`${id}:nested`);
  const failed = items.filter((item) => item.isError).length;
  return (
    <div className="pt-1.5 pl-5">
      <button type="button" aria-expanded={isOpen} onClick={toggle} className="text-xs text-accent">
        {isOpen ? "▾" : "▸"} subagent: {items.length} {items.length === 1 ? "step" : "steps"}
        {failed > 0 && <span className="text-bad"> · {failed} failed</span>}
      </button>
      {isOpen && (
        <div className="mt-1 border-l-2 border-line pl-2">
          {items.map((item) => (
            <ItemView key={item.key} item={item} />
          ))}
        </div>
      )}
    </div>
  );
}

/** What a subagent did whose call is not loaded. */
export function SubagentCard({ item }: { item: SubagentItem }) {
  return (
    <ItemFrame item={item} tone="plain">
      <p className="text-sm text-soft">A subagent that was started earlier</p>
      <Nested id={item.key} items={item.children} />
    </ItemFrame>
  );
}
