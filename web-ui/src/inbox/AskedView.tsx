import { useMemo } from "react";

import { PatchView } from "../transcript/DiffView";
import { LongText } from "../transcript/LongText";
import { Markdown } from "../transcript/Markdown";
import { ToolBody } from "../transcript/tool_bodies";
import { callTitle, toolView, type ToolView } from "../transcript/tools";
import { callItem, type Asked } from "./asked";
import { visibleText } from "./visible_text";

/** What is asked, in full. */
export function AskedView({ asked, id }: { asked: Asked; id: string }) {
  switch (asked.kind) {
    case "call":
      return <CallView call={asked} id={id} />;
    case "question":
      return <Markdown text={asked.question} />;
    case "gate":
      return <Markdown text={asked.summary} />;
    case "error":
      return (
        <p className="text-sm [overflow-wrap:anywhere] whitespace-pre-wrap text-bad">
          {asked.message}
          {asked.code !== null && <span className="text-faint"> ({asked.code})</span>}
        </p>
      );
    case "file":
      return (
        <div className="text-sm">
          <p className="[overflow-wrap:anywhere]">
            <code className="font-mono">{asked.file}</code> gives agents more:
          </p>
          <ul className="mt-1 list-disc pl-5">
            {asked.changes.map((change, place) => (
              <li key={place} className="font-mono text-xs [overflow-wrap:anywhere]">
                {change}
              </li>
            ))}
          </ul>
        </div>
      );
    case "unknown":
      return <LongText id={`${id}:asked`} text={JSON.stringify(asked.body, null, 2)} />;
  }
}

/** Families whose body shows all arguments of a call that has not run. */
const SHOWS_ALL: ReadonlySet<ToolView["family"]> = new Set(["edit", "write", "todo", "task"]);

function CallView({ call, id }: { call: Extract<Asked, { kind: "call" }>; id: string }) {
  const item = useMemo(() => callItem(id, call.tool, call.input), [id, call]);
  const view = useMemo(() => toolView(item), [item]);
  const isCommand = view.family === "bash" && Object.keys(call.input).length === 1;
  const isPlain = isCommand || SHOWS_ALL.has(view.family);
  return (
    <div className="flex flex-col gap-2">
      {call.note !== null && <p className="text-sm text-soft">{call.note}</p>}
      {isCommand || (
        <p className="text-sm [overflow-wrap:anywhere]">
          <span className="font-medium">{call.tool}</span>{" "}
          {view.family !== "bash" && (
            <span className="font-mono text-xs text-soft">{callTitle(item)}</span>
          )}
        </p>
      )}
      {isPlain && call.preview === null && <ToolBody item={item} view={view} />}
      {isPlain || <LongText id={`${id}:input`} text={JSON.stringify(item.call?.input, null, 2)} />}
      {call.preview !== null && <PatchView patch={visibleText(call.preview)} />}
    </div>
  );
}
