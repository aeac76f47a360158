import { useMemo } from "react";

import { classes } from "../ui/classes";
import { diffLines, parseUnified, type DiffLine } from "./diff";

const MARKS = { same: " ", added: "+", removed: "-" };
const TONES = { same: "", added: "bg-good-soft", removed: "bg-bad-soft" };
/** Screen readers say what was removed and added. */
const ELEMENTS = { same: "div", added: "ins", removed: "del" } as const;
const MOST_LINES = 2_000;

/** The difference of two texts. */
export function DiffView({ before, after }: { before: string; after: string }) {
  const diff = useMemo(() => diffLines(before, after), [before, after]);
  if (diff.hunks.length === 0) return <p className="text-sm text-faint">no difference</p>;
  return (
    <div className="overflow-x-auto rounded-md border border-line font-mono text-xs">
      {diff.hunks.map((hunk, place) => (
        <div key={place} className={place > 0 ? "border-t border-line" : undefined}>
          <Lines lines={hunk.lines} />
        </div>
      ))}
    </div>
  );
}

/** A diff that the server made. */
export function PatchView({ patch }: { patch: string }) {
  const lines = useMemo(() => parseUnified(patch), [patch]);
  return (
    <div className="overflow-x-auto rounded-md border border-line font-mono text-xs">
      <Lines lines={lines} isMarked />
    </div>
  );
}

function Lines({ lines, isMarked = false }: { lines: DiffLine[]; isMarked?: boolean }) {
  const shown = lines.slice(0, MOST_LINES);
  return (
    <>
      {shown.map((line, place) => {
        const Element = ELEMENTS[line.kind];
        return (
          <Element
            key={place}
            className={classes("block px-2 whitespace-pre no-underline", TONES[line.kind])}
          >
            {!isMarked && <span className="pr-2 text-faint select-none">{MARKS[line.kind]}</span>}
            {line.text}
          </Element>
        );
      })}
      {lines.length > shown.length && (
        <p className="px-2 py-1 text-faint">{lines.length - shown.length} more lines</p>
      )}
    </>
  );
}
