import { useRef } from "react";

import { classes } from "./classes";

/** Views of the same thing, of which one is shown. Arrow keys go from one to the next. */
export function Tabs<Name extends string>({
  label,
  tabs,
  current,
  onChange,
}: {
  label: string;
  tabs: readonly (readonly [name: Name, text: string])[];
  current: Name;
  onChange: (name: Name) => void;
}) {
  const list = useRef<HTMLDivElement>(null);
  const at = tabs.findIndex(([name]) => name === current);
  const go = (to: number) => {
    const next = tabs[(to + tabs.length) % tabs.length];
    if (next === undefined) return;
    onChange(next[0]);
    list.current?.querySelectorAll("button")[tabs.indexOf(next)]?.focus();
  };
  return (
    <div
      ref={list}
      role="tablist"
      aria-label={label}
      className="flex gap-1 overflow-x-auto border-b border-line"
      onKeyDown={(event) => {
        if (event.key === "ArrowRight") go(at + 1);
        else if (event.key === "ArrowLeft") go(at - 1);
        else return;
        event.preventDefault();
      }}
    >
      {tabs.map(([name, text]) => (
        <button
          key={name}
          type="button"
          role="tab"
          aria-selected={name === current}
          tabIndex={name === current ? 0 : -1}
          onClick={() => onChange(name)}
          className={classes(
            "min-h-10 shrink-0 border-b-2 px-3 text-sm focus-visible:-outline-offset-2",
            name === current
              ? "border-accent font-medium text-accent"
              : "border-transparent text-soft hover:bg-hover",
          )}
        >
          {text}
        </button>
      ))}
    </div>
  );
}
