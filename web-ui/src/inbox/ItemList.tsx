import { Link } from "@tanstack/react-router";

import type { ItemRow } from "../api/types";
import type { Search } from "../shell/address";
import { classes } from "../ui/classes";
import { Badge, State } from "../ui/Status";
import { Ago, useNow } from "../ui/time";
import { askerOf, expiryText, KIND_NAMES } from "./verdicts";

/** Items as a list to choose from. */
export function ItemList({
  items,
  current,
  search,
}: {
  items: readonly ItemRow[];
  current: string;
  search: Search;
}) {
  return (
    <ul aria-label="Items" className="flex flex-col">
      {items.map((item) => (
        <li key={item.id}>
          <Link
            to={`/inbox/${item.id}`}
            search={search}
            aria-current={item.id === current ? "true" : undefined}
            className={classes(
              "flex flex-col gap-0.5 border-b border-line px-4 py-2.5 hover:bg-hover focus-visible:-outline-offset-2",
              item.id === current && "md:bg-accent-soft",
            )}
          >
            <span className="flex items-center gap-2 text-xs text-faint">
              {item.status === "pending" ? (
                <Badge
                  tone={item.kind === "failure" ? "bad" : "wait"}
                  text={KIND_NAMES[item.kind]}
                />
              ) : (
                <State status={item.status} />
              )}
              <span className="min-w-0 truncate">{askerOf(item)}</span>
              <span className="ml-auto">
                <Ago at={item.decided_at ?? item.created_at} />
              </span>
            </span>
            <span className="line-clamp-2 text-sm [overflow-wrap:anywhere]">{item.title}</span>
            <Note item={item} />
          </Link>
        </li>
      ))}
    </ul>
  );
}

function Note({ item }: { item: ItemRow }) {
  const expiry = expiryText(item, useNow());
  if (item.status !== "pending") {
    if (item.decided_by === null) return null;
    return (
      <span className="text-xs text-faint">
        by {item.decided_by}
        {item.decided_via !== null && ` (${item.decided_via})`}
      </span>
    );
  }
  return expiry === null ? null : <span className="text-xs text-wait">{expiry}</span>;
}
