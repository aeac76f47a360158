import { useMemo, useRef, useState, type KeyboardEvent } from "react";

import { classes } from "../ui/classes";
import { SIGNS, TONES, toneOf } from "../ui/Status";
import { listMove, MOST_LISTED, rowsOf, type ListRow, type Opened } from "./list_rows";
import type { Phase } from "./phase";
import { PhaseFacts, phaseLabel } from "./PhaseFacts";

/** The phases as a tree in words: all that the graph shows, for the keyboard and for screen readers too. */
export function PhaseList({
  phases,
  selected,
  onSelect,
}: {
  phases: readonly Phase[];
  selected: string | null;
  onSelect: (path: string) => void;
}) {
  const [opened, setOpened] = useState<Opened>({ open: new Map(), limits: new Map() });
  const [focused, setFocused] = useState<string | null>(null);
  const tree = useRef<HTMLUListElement>(null);
  const rows = useMemo(() => rowsOf(phases, opened), [phases, opened]);
  const start = [focused, selected].find((id) => rows.some((row) => row.id === id));

  const open = (path: string, isOpen: boolean) =>
    setOpened((before) => ({ ...before, open: new Map(before.open).set(path, isOpen) }));
  const choose = (row: ListRow) => {
    setFocused(row.id);
    if (row.phase !== null) {
      onSelect(row.phase.path);
      return;
    }
    const group = row.parent ?? "";
    setOpened((before) => {
      const limit = (before.limits.get(group) ?? MOST_LISTED) + MOST_LISTED;
      return { ...before, limits: new Map(before.limits).set(group, limit) };
    });
  };
  const press = (event: KeyboardEvent, row: ListRow) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") choose(row);
    else {
      const move = listMove(rows, row.id, event.key);
      if (move === null) return;
      if ("open" in move) open(move.open, move.isOpen);
      else {
        setFocused(move.focus);
        const to = `[data-row="${CSS.escape(move.focus)}"]`;
        tree.current?.querySelector<HTMLElement>(to)?.focus();
      }
    }
    event.preventDefault();
  };
  return (
    <ul
      ref={tree}
      role="tree"
      aria-label="Phases"
      className="rounded-lg border border-line bg-panel p-1"
    >
      {rows.map((row, at) => (
        <Row
          key={row.id}
          row={row}
          isSelected={row.id === selected}
          isFocused={start === undefined ? at === 0 : row.id === start}
          onKeyDown={(event) => press(event, row)}
          onClick={() => choose(row)}
          onToggle={() => open(row.id, row.isOpen === false)}
        />
      ))}
    </ul>
  );
}

function Row({
  row,
  isSelected,
  isFocused,
  onKeyDown,
  onClick,
  onToggle,
}: {
  row: ListRow;
  isSelected: boolean;
  isFocused: boolean;
  onKeyDown: (event: KeyboardEvent) => void;
  onClick: () => void;
  onToggle: () => void;
}) {
  const { phase, level, isOpen } = row;
  return (
    <li
      role="treeitem"
      data-row={row.id}
      aria-level={level}
      aria-posinset={row.place}
      aria-setsize={row.size}
      aria-selected={isSelected}
      {...(isOpen !== null && { "aria-expanded": isOpen })}
      aria-label={phase === null ? "Show more" : phaseLabel(phase)}
      tabIndex={isFocused ? 0 : -1}
      onKeyDown={onKeyDown}
      onClick={onClick}
      style={{ paddingLeft: `${(level - 1) * 1.1 + 0.4}rem` }}
      className={classes(
        "flex min-h-10 cursor-pointer items-center gap-2 rounded-md py-1 pr-2 hover:bg-hover",
        isSelected && "bg-accent-soft",
      )}
    >
      <span
        aria-hidden
        className="w-4 shrink-0 text-center text-faint"
        onClick={(event) => {
          if (isOpen === null) return;
          event.stopPropagation();
          onToggle();
        }}
      >
        {isOpen === null ? "" : isOpen ? "▾" : "▸"}
      </span>
      {phase === null ? (
        <span className="text-sm text-accent">Show more</span>
      ) : (
        <>
          <Sign phase={phase} />
          <PhaseFacts phase={phase} />
        </>
      )}
    </li>
  );
}

function Sign({ phase }: { phase: Phase }) {
  if (phase.status === null) return null;
  const tone = phase.isLost ? "lost" : toneOf(phase.status);
  return (
    <span
      aria-hidden
      className={classes(
        "grid size-5 shrink-0 place-items-center rounded-full text-xs",
        TONES[tone],
      )}
    >
      {SIGNS[tone]}
    </span>
  );
}
