import { useState, type ReactNode } from "react";

import { classes } from "../ui/classes";
import { useActions } from "./context";
import { eventsOf, type Item } from "./items";
import type { JournalEvent } from "./journal";
import { formatSize } from "./results";
import { useToggle } from "./toggles";

type Tone = "plain" | "user" | "bad" | "wait" | "none" | "dense";

const TONES: Record<Tone, string> = {
  none: "px-3 py-1.5",
  dense: "px-3 py-px",
  plain: "px-3 py-2 border border-line bg-panel",
  user: "px-3 py-2 border border-line bg-accent-soft",
  bad: "px-3 py-2 border border-bad bg-panel",
  wait: "px-3 py-2 border border-line bg-wait-soft",
};

/** An item with what can be done with it: its link, its raw lines, and more. */
export function ItemFrame({
  item,
  tone,
  children,
}: {
  item: Item;
  tone: Tone;
  children: ReactNode;
}) {
  const { linkTo, extra } = useActions();
  const [isRaw, toggle] = useToggle(`${item.key}:raw`);
  const events = eventsOf(item);
  return (
    <article
      id={`event-${item.seq}`}
      data-seq={item.seq}
      tabIndex={-1}
      className={classes(
        // What is gone to by keys has a ring around its row.
        "group relative rounded-md focus-visible:outline-none",
        tone !== "dense" && "my-1",
        TONES[tone],
      )}
    >
      {children}
      {item.kind !== "live" && (
        <div className="absolute -top-2.5 right-2 flex gap-2 rounded bg-panel px-1.5 text-xs text-faint opacity-0 shadow-sm group-focus-within:opacity-100 group-hover:opacity-100">
          {item.at !== null && <time dateTime={item.at}>{timeText(item.at)}</time>}
          <a href={linkTo(item.seq)} className="hover:text-ink" title="Link to this event">
            #{item.seq}
          </a>
          {events.length > 0 && (
            <button type="button" aria-pressed={isRaw} onClick={toggle} className="hover:text-ink">
              raw
            </button>
          )}
          {extra?.(item)}
        </div>
      )}
      {isRaw && <RawLines events={events} />}
    </article>
  );
}

function timeText(at: string): string {
  return new Date(at).toLocaleTimeString([], { hour12: false });
}

function RawLines({ events }: { events: JournalEvent[] }) {
  const text = events.map((event) => JSON.stringify(event)).join("\n");
  return (
    <pre className="mt-2 max-h-96 overflow-auto rounded-md bg-raised p-2 font-mono text-xs break-all whitespace-pre-wrap">
      {text}
    </pre>
  );
}

/** Beyond this, a text is saved as a file instead of being put into the page. */
const MOST_BYTES = 4 * 1024 * 1024;

/** Says that the page has only a part of a text, and loads the rest on demand. */
export function CutNote({ event }: { event: JournalEvent }) {
  const { expand, source } = useActions();
  const [problem, setProblem] = useState("");
  const size = (event.cut ?? []).reduce((sum, cut) => sum + cut.size, 0);
  if (size === 0) return null;
  const load = () => {
    const done = size > MOST_BYTES ? save(event.seq, source.whole(event.seq)) : expand(event.seq);
    done.catch((error: unknown) =>
      setProblem(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <p className="pt-1 text-xs text-faint">
      {formatSize(size)} in all ·{" "}
      <button type="button" onClick={load} className="text-accent hover:underline">
        {size > MOST_BYTES ? "Save as a file" : "Show all"}
      </button>
      {problem && <span className="text-bad"> {problem}</span>}
    </p>
  );
}

async function save(seq: number, loading: Promise<JournalEvent>): Promise<void> {
  const blob = new Blob([JSON.stringify(await loading, null, 2)], { type: "application/json" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `event-${seq}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
