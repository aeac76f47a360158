import { classes } from "../ui/classes";
import { usdText } from "../ui/money";
import { spanText, useNow } from "../ui/time";
import { countsText, shortCountsText, type Phase } from "./phase";

/** What the list and the graph say of a phase, in two lines: its name and time; what it does, and its cost. */
export function PhaseFacts({
  phase,
  isShort = false,
  isQuiet = false,
}: {
  phase: Phase;
  /** One line: the heading of a group. */
  isShort?: boolean;
  isQuiet?: boolean;
}) {
  const second = secondLine(phase);
  const isTold = phase.note !== null && phase.status !== null;
  return (
    <span className="flex min-w-0 flex-1 flex-col leading-snug">
      <span className="flex items-baseline gap-2">
        <span
          title={phase.name}
          className={classes("truncate text-sm font-medium", isQuiet && "text-soft")}
        >
          {phase.name}
        </span>
        {isShort && (
          <span className="truncate text-xs text-faint">
            {phase.counts === null ? doesText(phase) : shortCountsText(phase.counts)}
          </span>
        )}
        <span className="ml-auto shrink-0 text-xs text-faint">
          {phase.growsFrom === null ? fixedText(phase) : <Growing phase={phase} />}
        </span>
      </span>
      {!isShort && (
        <span className="flex items-baseline gap-2 text-xs">
          <span title={second} className={classes("truncate", isTold ? "text-ink" : "text-faint")}>
            {second}
          </span>
          <span className="ml-auto shrink-0 text-faint">
            {phase.cost === null || phase.cost === 0 ? "" : usdText(phase.cost)}
          </span>
        </span>
      )}
    </span>
  );
}

/** In a run what matters now; of a declared phase everything. */
function secondLine(phase: Phase): string {
  if (phase.note === null) return doesText(phase);
  return phase.status === null ? `${doesText(phase)}, ${phase.note}` : phase.note;
}

function fixedText({ seconds }: Phase): string {
  return seconds === null ? "" : spanText(seconds);
}

function Growing({ phase: { seconds, growsFrom } }: { phase: Phase }) {
  const now = useNow();
  return spanText((seconds ?? 0) + Math.max(0, now - (growsFrom ?? now)) / 1_000);
}

/** What a phase is: `agent writer`, `gate approve`, `block, iteration 2 of at most 3`. */
export function doesText({ kind, does, counts }: Phase): string {
  const what = does === null || does === "" ? kind : `${kind} ${does}`;
  return counts === null ? what : `${what}, ${countsText(counts)}`;
}

/** Everything about a phase as a sentence, for those who do not see the graph. */
export function phaseLabel(phase: Phase): string {
  const parts = [phase.name, doesText(phase)];
  if (phase.isLost) parts.push("lost");
  else if (phase.status !== null) parts.push(phase.status.replaceAll("_", " "));
  if (phase.note !== null) parts.push(phase.note);
  if (phase.seconds !== null) parts.push(spanText(phase.seconds));
  if (phase.cost !== null && phase.cost > 0) parts.push(usdText(phase.cost));
  return parts.join(", ");
}
