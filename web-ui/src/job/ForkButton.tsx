import { eventsOf, type Item } from "../transcript/items";
import type { ForkPoint } from "./fork_point";

/** Forks the session after a message of its conversation. */
export function ForkButton({ item, onFork }: { item: Item; onFork: (point: ForkPoint) => void }) {
  const last = eventsOf(item).findLast(
    (event) => event.type !== "error" && event.end === true && typeof event.message === "number",
  );
  if (last === undefined) return null;
  return (
    <button
      type="button"
      className="hover:text-ink"
      title="Fork the session after this message"
      onClick={() => onFork({ at_seq: last.seq })}
    >
      fork
    </button>
  );
}
