import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { useAddressPart, useAddressSearch, type Search } from "../shell/address";
import { useShortcuts } from "../shell/shortcuts";
import { Button } from "../ui/Button";
import { classes } from "../ui/classes";
import { Empty, Failure, Loading } from "../ui/Page";
import { InboxFilters } from "./InboxFilters";
import { ItemList } from "./ItemList";
import { ItemPanel } from "./ItemPanel";
import { useInbox, useItem } from "./use_inbox";

/** Everything that waits for a person: a list beside the item that is looked at; on a phone one after the other. */
export default function InboxPage() {
  const { status, kind, agent } = useAddressSearch();
  return <Inbox key={[status, kind, agent].join()} />;
}

function Inbox() {
  const chosen = useAddressPart("item");
  const search = useAddressSearch();
  const navigate = useNavigate();
  const status = search.status === "decided" ? "decided" : "pending";
  const inbox = useInbox({ status, kind: search.kind ?? "", agent: search.agent ?? "" });
  const items = inbox.data?.pages.flatMap((page) => page.data) ?? [];
  // The item that is read stays when others come: a key answers what the person has read.
  const [first, setFirst] = useState("");
  if (first === "" && items[0] !== undefined) setFirst(items[0].id);
  const shown = chosen === "" ? first : chosen;
  const number = useItem(shown).data?.number ?? 0;

  const move = (step: 1 | -1) => {
    const target =
      step === 1
        ? items.find((item) => item.number < number)
        : items.findLast((item) => item.number > number);
    if (target !== undefined) void navigate({ to: `/inbox/${target.id}`, search });
  };
  const group = "Inbox";
  useShortcuts([
    { keys: "j", label: "Next item", group, run: () => move(1) },
    { keys: "k", label: "Previous item", group, run: () => move(-1) },
  ]);

  return (
    <div className="flex h-full min-h-0">
      <title>Inbox · nightherd</title>
      <section
        aria-label="List of items"
        className={classes(
          "flex w-full min-w-0 flex-col border-line md:w-88 md:shrink-0 md:border-r",
          chosen !== "" && "hidden md:flex",
        )}
      >
        <div className="flex flex-col gap-2 border-b border-line px-4 py-3">
          <h1 className="text-xl font-semibold">Inbox</h1>
          <Tabs status={status} search={search} />
          <InboxFilters search={search} />
        </div>
        <div className="min-h-0 flex-1 overflow-y-auto">
          {inbox.isPending && <Loading />}
          {inbox.isError && items.length === 0 && (
            <Failure error={inbox.error} retry={() => void inbox.refetch()} />
          )}
          {inbox.isSuccess && items.length === 0 && <Nothing search={search} />}
          <ItemList items={items} current={shown} search={search} />
          {inbox.hasNextPage && (
            <div className="p-3 text-center">
              <Button
                disabled={inbox.isFetchingNextPage}
                onClick={() => void inbox.fetchNextPage()}
              >
                Show more
              </Button>
            </div>
          )}
        </div>
      </section>
      <section
        aria-label="Item"
        tabIndex={0}
        className={classes(
          "min-h-0 min-w-0 flex-1 overflow-y-auto outline-offset-[-2px]",
          chosen === "" && "hidden md:block",
        )}
      >
        {chosen !== "" && <h1 className="sr-only md:hidden">Inbox</h1>}
        {chosen !== "" && (
          <Link
            to="/inbox"
            search={search}
            className="flex min-h-11 items-center border-b border-line px-4 text-sm text-accent md:hidden"
          >
            ← All items
          </Link>
        )}
        <div className="max-w-3xl p-4">{shown !== "" && <Shown key={shown} id={shown} />}</div>
      </section>
    </div>
  );
}

function Shown({ id }: { id: string }) {
  const item = useItem(id);
  if (item.data !== undefined) return <ItemPanel key={id} item={item.data} hasKeys />;
  if (item.isError) return <Failure error={item.error} retry={() => void item.refetch()} />;
  return <Loading />;
}

function Tabs({ status, search }: { status: string; search: Search }) {
  const tabs = [
    ["pending", "Waiting"],
    ["decided", "Decided"],
  ] as const;
  return (
    <nav aria-label="Waiting or decided" className="flex gap-1">
      {tabs.map(([value, name]) => (
        <Link
          key={value}
          to="/inbox"
          search={{ ...search, status: value === "pending" ? undefined : value }}
          aria-current={status === value ? "page" : undefined}
          className={classes(
            "flex min-h-10 items-center rounded-md px-3 text-sm md:min-h-8",
            status === value
              ? "bg-accent-soft font-medium text-accent"
              : "text-soft hover:bg-hover",
          )}
        >
          {name}
        </Link>
      ))}
    </nav>
  );
}

function Nothing({ search }: { search: Search }) {
  const isFiltered = Boolean(search.kind ?? search.agent);
  if (isFiltered) return <Empty>No item fits these filters.</Empty>;
  if (search.status === "decided") return <Empty>Nothing was decided yet.</Empty>;
  return <Empty>Nothing waits for you.</Empty>;
}
