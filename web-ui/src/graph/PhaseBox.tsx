import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";
import { createContext, use } from "react";

import { classes } from "../ui/classes";
import { SIGNS, TONES, toneOf, type Tone } from "../ui/Status";
import type { Box } from "./layout";
import { PhaseFacts, phaseLabel } from "./PhaseFacts";

/** What the boxes of one graph share. */
export interface BoxActions {
  /** The phase that is looked at. */
  selected: string | null;
  /** The phase that the Tab key comes to. */
  focused: string | null;
  select: (path: string) => void;
  /** Draw another item or iteration of a group. */
  choose: (path: string, place: number) => void;
}

export const BoxContext = createContext<BoxActions | null>(null);

export type PhaseBoxNode = Node<{ box: Box }, "phase">;

const EDGES: Record<Tone, string> = {
  good: "border-good",
  busy: "border-busy",
  wait: "border-wait",
  bad: "border-bad",
  lost: "border-lost",
  quiet: "border-edge",
};

/** A phase on the graph; of a group its frame, with a heading. */
export function PhaseBox({ data: { box } }: NodeProps<PhaseBoxNode>) {
  const actions = use(BoxContext);
  const { phase } = box;
  const tone = phase.isLost ? "lost" : toneOf(phase.status ?? "");
  const isFrame = box.shown !== null;
  const isOpen = phase.status === null || tone !== "quiet";
  return (
    <div
      className={classes(
        "size-full rounded-md border",
        EDGES[tone],
        isFrame ? "border-dashed bg-page/60" : "bg-panel",
        actions?.selected === phase.path && "ring-2 ring-accent",
      )}
    >
      <Handle type="target" position={Position.Top} isConnectable={false} className="invisible" />
      <div className="pointer-events-auto flex items-stretch">
        <button
          type="button"
          data-phase={phase.path}
          aria-pressed={actions?.selected === phase.path}
          aria-label={phaseLabel(phase)}
          tabIndex={actions?.focused === phase.path ? 0 : -1}
          onClick={() => actions?.select(phase.path)}
          className={classes(
            "nodrag flex min-w-0 flex-1 items-center gap-2 rounded-md px-2.5 text-left hover:bg-hover",
            isFrame ? "h-9" : "h-15",
          )}
        >
          <span
            aria-hidden
            className={classes(
              "grid size-5 shrink-0 place-items-center rounded-full text-xs",
              TONES[tone],
              tone === "busy" && "motion-safe:animate-pulse",
            )}
          >
            {phase.status === null ? KINDS[phase.kind] : SIGNS[tone]}
          </span>
          <PhaseFacts phase={phase} isShort={isFrame} isQuiet={!isOpen} />
        </button>
        {isFrame && <Chooser box={box} />}
      </div>
      <Handle
        type="source"
        position={Position.Bottom}
        isConnectable={false}
        className="invisible"
      />
    </div>
  );
}

/** Signs of the kinds of phases, where there is no state to show. */
const KINDS: Record<string, string> = {
  agent: "◇",
  command: "$",
  workflow: "⧉",
  gate: "?",
  wait: "◷",
  block: "▢",
  until: "↻",
};

/** Goes through the items or iterations of a group, of which one is drawn. */
function Chooser({ box }: { box: Box }) {
  const actions = use(BoxContext);
  const { shown, phase } = box;
  if (shown === null || shown.count < 2 || shown.place === null) {
    const rest = shown?.place === null ? shown.count : 0;
    return rest > 0 ? <span className="self-center pr-2 text-xs text-faint">+{rest}</span> : null;
  }
  const { place, count } = shown;
  const noun = phase.counts?.noun ?? "item";
  const go = (to: number) => actions?.choose(phase.path, to);
  return (
    <span className="flex items-center gap-0.5 pr-1 text-xs text-soft">
      <button
        type="button"
        aria-label={`Earlier ${noun} of ${phase.name}`}
        disabled={place === 0}
        onClick={() => go(place - 1)}
        className="rounded px-1.5 py-1 hover:bg-hover disabled:opacity-50"
      >
        ‹
      </button>
      {place + 1}/{count}
      <button
        type="button"
        aria-label={`Later ${noun} of ${phase.name}`}
        disabled={place === count - 1}
        onClick={() => go(place + 1)}
        className="rounded px-1.5 py-1 hover:bg-hover disabled:opacity-50"
      >
        ›
      </button>
    </span>
  );
}
