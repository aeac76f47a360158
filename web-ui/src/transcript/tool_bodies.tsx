import type { ReactNode } from "react";

import { classes } from "../ui/classes";
import { AnsiText } from "./AnsiText";
import { DiffView } from "./DiffView";
import type { ToolItem } from "./items";
import { LongText } from "./LongText";
import { Markdown } from "./Markdown";
import { Picture } from "./Picture";
import { resultOf } from "./results";
import type { ToolView } from "./tools";

/** What a call did, in the way that fits its tool. */
export function ToolBody({ item, view }: { item: ToolItem; view: ToolView }) {
  const result = item.result === null ? null : resultOf(item.result);
  return (
    <div className="flex flex-col gap-2">
      {bodyOf(item, view)}
      {result?.pictures.map((picture, place) => (
        <Picture key={place} picture={picture} />
      ))}
      {isOutputApart(view) && item.isError && result !== null && (
        <LongText id={`${item.key}:error`} text={result.text} />
      )}
    </div>
  );
}

/** Whether the body shows no output: what a failed call said is then shown below it. */
function isOutputApart(view: ToolView): boolean {
  return view.family === "edit" || view.family === "write" || view.family === "todo";
}

function bodyOf(item: ToolItem, view: ToolView): ReactNode {
  const id = `${item.key}:body`;
  switch (view.family) {
    case "bash":
      return (
        <>
          <pre className="overflow-x-auto rounded-md bg-raised px-2.5 py-2 font-mono text-xs [overflow-wrap:anywhere] whitespace-pre-wrap">
            <span className="text-faint select-none">$ </span>
            <AnsiText text={view.command} />
          </pre>
          <LongText id={id} text={view.output} keeps="end" />
          {view.exitCode !== null && <p className="text-xs text-bad">exit code {view.exitCode}</p>}
        </>
      );
    case "read":
      return <LongText id={id} text={view.content} />;
    case "edit":
      return view.edits.map((edit, place) => <DiffView key={place} {...edit} />);
    case "write":
      return <DiffView before="" after={view.content} />;
    case "search":
      return <LongText id={id} text={view.matches} />;
    case "todo":
      return (
        <ul className="text-sm">
          {view.todos.map((todo, place) => (
            <li key={place} className={classes(todo.status === "completed" && "text-faint")}>
              <span aria-hidden>{TODO_MARKS[todo.status] ?? "○"}</span> {todo.text}
            </li>
          ))}
        </ul>
      );
    case "web":
      return (
        <>
          {view.prompt && <p className="text-sm text-soft">{view.prompt}</p>}
          <LongText id={id} text={view.output} />
        </>
      );
    case "task":
      return (
        <>
          <Labelled label="asked">
            <Markdown text={view.prompt} />
          </Labelled>
          {view.answer && (
            <Labelled label="answered">
              <Markdown text={view.answer} />
            </Labelled>
          )}
        </>
      );
    case "mcp":
    case "unknown":
      return (
        <>
          <LongText id={`${id}:input`} text={pretty(view.input)} />
          <LongText id={id} text={view.output} keeps="end" />
        </>
      );
  }
}

function pretty(value: unknown): string {
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

const TODO_MARKS: Record<string, string> = { completed: "✓", in_progress: "▸" };

export function Labelled({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="border-l-2 border-line pl-3">
      <p className="text-xs text-faint">{label}</p>
      {children}
    </div>
  );
}
