import { Link } from "@tanstack/react-router";

import { Badge, type Tone } from "../ui/Status";
import { spanText, useNow } from "../ui/time";
import { sizeText, type Home } from "./live_rows";

const TONES: Record<Home["health"]["level"], Tone> = {
  ok: "good",
  warning: "wait",
  problem: "bad",
};
const WORDS = { ok: "healthy", warning: "look at this", problem: "problem" };

/** Whether the fleet itself is well, in one line; what is wrong in one line each. */
export function HealthLine({ health }: { health: Home["health"] }) {
  const { daemon, disk, troubles, level } = health;
  const now = useNow();
  return (
    <section aria-label="Health" className="flex flex-col gap-1 text-sm">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-soft">
        <Link to="/health" className="inline-flex min-h-8 items-center">
          <Badge tone={TONES[level]} text={WORDS[level]} />
        </Link>
        {daemon !== null && (
          <span>
            daemon up {spanText((now - Date.parse(daemon.started_at)) / 1_000)}
            {daemon.is_draining && ", ending when its jobs are done"}
          </span>
        )}
        {disk !== null && (
          <span>
            {sizeText(disk.free_bytes)} of {sizeText(disk.total_bytes)} free
          </span>
        )}
      </p>
      {troubles.length > 0 && (
        <ul className="flex flex-col gap-1">
          {troubles.map(({ level: one, text }) => (
            <li key={text} className="flex items-start gap-2">
              <Badge tone={TONES[one]} text={one} />
              <span className="min-w-0 [overflow-wrap:anywhere]">{text}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
