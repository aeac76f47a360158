import { Link } from "@tanstack/react-router";

import { Button } from "../ui/Button";
import type { Picked } from "./use_picked";

/** What is picked, and the way to compare it. */
export function CompareBar({ picks }: { picks: Picked }) {
  const [left, right] = picks.picked;
  if (left === undefined) return null;
  return (
    <div
      role="region"
      aria-label="Compare"
      className="sticky bottom-2 z-10 flex flex-wrap items-center gap-3 rounded-lg border border-accent bg-panel px-3 py-2 text-sm shadow-lg"
    >
      {right === undefined ? (
        <span>{left}: select another session to compare it with</span>
      ) : (
        <>
          <span className="min-w-0 [overflow-wrap:anywhere]">
            {left} and {right}
          </span>
          <Link
            to={`/compare/${left}/${right}`}
            className="ml-auto inline-flex min-h-11 items-center rounded-md bg-accent px-3 font-medium text-on-accent md:min-h-8"
          >
            Compare
          </Link>
        </>
      )}
      <Button look="ghost" className={right === undefined ? "ml-auto" : ""} onClick={picks.clear}>
        Clear
      </Button>
    </div>
  );
}
