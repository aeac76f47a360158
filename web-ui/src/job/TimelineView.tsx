import { Link } from "@tanstack/react-router";
import { useMemo, useRef, useState, type KeyboardEvent } from "react";

import { classes } from "../ui/classes";
import { spanText, useNow } from "../ui/time";
import { isOpen, type Outline } from "./documents";
import { timelineOf, type Bar, type Progress } from "./timeline";

const TONES: Record<Bar["kind"], string> = {
  work: "bg-accent opacity-70",
  tool: "bg-busy",
  error: "bg-bad",
  gap: "hatched border border-edge",
  child: "bg-lost",
  open: "border border-dashed border-busy bg-busy-soft",
};

/** By key, how many bars further it goes. */
const STEPS: Record<string, number> = {
  ArrowRight: 1,
  ArrowDown: 1,
  ArrowLeft: -1,
  ArrowUp: -1,
  Home: -100_000,
  End: 100_000,
};

/** When the job worked, waited and was dead; a click goes there in the transcript. Arrow keys go from bar to bar. */
export function TimelineView({
  outline,
  progress,
  onGo,
}: {
  outline: Outline;
  progress: Progress | null;
  onGo: (seq: number) => void;
}) {
  const now = useNow();
  const end = isOpen(outline) ? now : 0;
  const line = useMemo(() => timelineOf(outline, end, progress), [outline, end, progress]);
  const frame = useRef<HTMLElement>(null);
  const [focused, setFocused] = useState("");
  if (line === null) return null;
  const lanes: [string, Bar[]][] = [
    ["work", line.work],
    ["dead time", line.gaps],
    ["children", line.children],
  ];
  const keys = lanes.flatMap(([, bars]) => bars.map(({ key }) => key));
  const stop = keys.includes(focused) ? focused : keys[0];
  const move = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    const at = keys.indexOf((event.target as HTMLElement).dataset["bar"] ?? "");
    if (step === undefined || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = keys[Math.min(keys.length - 1, Math.max(0, at + step))] ?? "";
    setFocused(next);
    frame.current?.querySelector<HTMLElement>(`[data-bar="${CSS.escape(next)}"]`)?.focus();
  };
  return (
    <section
      ref={frame}
      aria-label="Timeline"
      className="border-b border-line px-4 py-2 text-xs"
      onKeyDown={move}
    >
      {lanes
        .filter(([, bars]) => bars.length > 0)
        .map(([name, bars]) => (
          <div key={name} className="flex items-center gap-2 py-0.5">
            <span className="w-20 shrink-0 text-faint">{name}</span>
            <div className="relative h-4 flex-1 rounded bg-raised">
              {bars.map((bar) => (
                <BarView key={bar.key} bar={bar} isStop={bar.key === stop} onGo={onGo} />
              ))}
              {name === "work" &&
                line.checkpoints.map((point) => (
                  <span
                    key={point.number}
                    title={`checkpoint ${point.number}: ${point.trigger}`}
                    className="pointer-events-none absolute -bottom-0.5 h-1.5 w-0.5 bg-ink"
                    style={{ left: `${point.at * 100}%` }}
                  />
                ))}
            </div>
          </div>
        ))}
      <div className="flex flex-wrap gap-x-3 pl-22 text-faint">
        <span>{new Date(line.start).toLocaleString()}</span>
        {line.gaps.map((gap) => (
          <button
            key={gap.key}
            type="button"
            data-gap
            className="text-wait hover:underline"
            onClick={() => gap.seq !== null && onGo(gap.seq)}
          >
            {gap.label} ({spanText(gap.seconds)})
          </button>
        ))}
        <span className="ml-auto">{spanText((line.end - line.start) / 1000)}</span>
      </div>
    </section>
  );
}

function BarView({
  bar,
  isStop,
  onGo,
}: {
  bar: Bar;
  /** Whether the Tab key comes to it. */
  isStop: boolean;
  onGo: (seq: number) => void;
}) {
  const failed = bar.errors === 0 ? "" : bar.errors === 1 ? ", 1 error" : `, ${bar.errors} errors`;
  const title = `${bar.label}, ${spanText(bar.seconds)}${failed}`;
  const style = { left: `${bar.from * 100}%`, width: `max(2px, ${bar.length * 100}%)` };
  const look = classes(
    "absolute inset-y-0 rounded-sm hover:opacity-100 focus-visible:z-10 focus-visible:opacity-100",
    TONES[bar.kind],
    bar.errors > 0 && bar.kind !== "error" && "border-b-3 border-bad",
  );
  const place = { "data-bar": bar.key, tabIndex: isStop ? 0 : -1, title, className: look, style };
  if (bar.job !== null) {
    return (
      <Link to={`/jobs/${bar.job}`} {...place}>
        <span className="sr-only">{title}</span>
      </Link>
    );
  }
  return (
    <button
      type="button"
      {...place}
      aria-label={title}
      onClick={() => bar.seq !== null && onGo(bar.seq)}
    />
  );
}
