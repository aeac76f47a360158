import { classes } from "../ui/classes";
import { timeText } from "../ui/time";
import { summaryOf, type Slot } from "./slots";
import { marksOf, placeOf, type Day } from "./strip";

const CELLS = 14 * 12;
const TONES: Record<string, string> = {
  completed: "bg-good",
  running: "bg-busy",
  failed: "bg-bad",
  missed: "bg-bad rounded-none rotate-45",
  lost: "bg-lost",
  skipped: "border border-edge bg-raised",
  planned: "border border-accent",
};
const LEGEND = ["completed", "running", "failed", "missed", "lost", "skipped", "planned"];

/** Two weeks of one schedule. The list of its slots says the same in words. */
export function Strip({
  slots,
  begin,
  days,
  now,
}: {
  slots: readonly Slot[];
  begin: number;
  days: readonly Day[];
  now: number;
}) {
  const marks = marksOf(slots, begin, days.length, CELLS);
  const here = placeOf(new Date(now).toISOString(), begin, days.length);
  return (
    <div role="img" aria-label={summaryOf(slots)} className="relative h-6 w-full">
      <div className="absolute inset-0 grid auto-cols-fr grid-flow-col overflow-hidden rounded border border-line">
        {days.map((day) => (
          <div
            key={day.title}
            className={classes(
              "border-r border-line last:border-0",
              day.isToday ? "bg-accent-soft" : "bg-raised",
            )}
          />
        ))}
      </div>
      {here !== null && (
        <div className="absolute inset-y-0 w-px bg-accent" style={{ left: `${here * 100}%` }} />
      )}
      {marks.map((mark) => (
        <div
          key={mark.at}
          title={mark.slots.map((slot) => `${timeText(slot.due_at)}: ${slot.text}`).join("\n")}
          className={classes(
            "absolute top-1.5 size-3 -translate-x-1/2 rounded-full",
            TONES[mark.tone],
          )}
          style={{ left: `${mark.at * 100}%` }}
        />
      ))}
    </div>
  );
}

export function StripHead({ days }: { days: readonly Day[] }) {
  return (
    <div aria-hidden className="grid auto-cols-fr grid-flow-col text-center text-xs text-faint">
      {days.map((day) => (
        <span
          key={day.title}
          title={day.title}
          className={classes(day.isToday && "font-semibold text-accent")}
        >
          {day.label}
        </span>
      ))}
    </div>
  );
}

export function StripLegend() {
  return (
    <ul aria-label="Signs" className="flex flex-wrap gap-x-4 gap-y-1 text-xs text-faint">
      {LEGEND.map((tone) => (
        <li key={tone} className="flex items-center gap-1.5">
          <span aria-hidden className={classes("inline-block size-3 rounded-full", TONES[tone])} />
          {tone}
        </li>
      ))}
    </ul>
  );
}
