import { Link } from "@tanstack/react-router";

import { QuickAnswer } from "../inbox/QuickAnswer";
import { Card, Section } from "../ui/Page";
import type { Home } from "./live_rows";

/** The newest of what waits for a person, with the answers that need no second look. */
export function NeedsYou({ inbox }: { inbox: Home["inbox"] }) {
  if (inbox.waiting === 0) return null;
  const others = inbox.waiting - inbox.rows.length;
  return (
    <Section title="Needs you" aside={`${inbox.waiting} waiting`}>
      <Card>
        <ul aria-label="Needs you">
          {inbox.rows.map((row) => (
            <li key={row.id} className="border-b border-line last:border-0">
              <QuickAnswer row={row} />
            </li>
          ))}
        </ul>
      </Card>
      <Link to="/inbox" className="inline-flex min-h-10 items-center text-sm text-accent underline">
        {others > 0 ? `All ${inbox.waiting} in the inbox` : "Open the inbox"}
      </Link>
    </Section>
  );
}
