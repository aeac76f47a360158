import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { request, type Envelope } from "../api/client";
import type { Schemas } from "../api/types";
import { useAddressSearch } from "../shell/address";
import { Button } from "../ui/Button";
import { Empty, Failure, Loading, Page } from "../ui/Page";
import { State } from "../ui/Status";
import { ScheduleDetails } from "./ScheduleDetails";
import { slotsOf, type StripRow } from "./slots";
import { Strip, StripHead, StripLegend } from "./Strip";
import { daysOf, stripBegin, type Day } from "./strip";

const BACK = 7;
const DAYS = 14;

interface StripPage extends Envelope<Schemas["StripDocument"]> {
  next_after: string | null;
}

/** Two weeks of every schedule: what ran, what was missed or skipped, and what comes. */
export default function SchedulesPage() {
  const { schedule: chosen } = useAddressSearch();
  const navigate = useNavigate();
  const [now] = useState(() => Date.now());
  const begin = stripBegin(now, BACK);
  const days = useMemo(() => daysOf(begin, DAYS, now), [begin, now]);
  const strip = useInfiniteQuery({
    queryKey: ["slots", begin],
    queryFn: ({ pageParam, signal }) => {
      const query = { since: isoOf(begin), until: isoOf(endOf(begin)), after: pageParam };
      return request<StripPage>("/slots", { query, signal });
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.next_after,
    meta: { live: ["schedule"] },
  });
  const rows = strip.data?.pages.flatMap((page) => page.data.schedules) ?? [];
  const choose = (id: string) =>
    void navigate({ to: "/schedules", search: id === chosen ? {} : { schedule: id } });
  return (
    <Page title="Schedules">
      {strip.isPending && <Loading />}
      {strip.isError && <Failure error={strip.error} retry={() => void strip.refetch()} />}
      {strip.isSuccess && rows.length === 0 && (
        <Empty>
          No agent has a schedule. Add one under <code>schedules:</code> in the fleet file.
        </Empty>
      )}
      {rows.length > 0 && <StripLegend />}
      <ul className="flex flex-col gap-2" aria-label="Schedules">
        {rows.map((row) => (
          <ScheduleItem
            key={row.id}
            row={row}
            begin={begin}
            days={days}
            now={now}
            isOpen={row.id === chosen}
            onToggle={() => choose(row.id)}
          />
        ))}
      </ul>
      {strip.hasNextPage && (
        <Button disabled={strip.isFetchingNextPage} onClick={() => void strip.fetchNextPage()}>
          Show more
        </Button>
      )}
    </Page>
  );
}

function ScheduleItem({
  row,
  begin,
  days,
  now,
  isOpen,
  onToggle,
}: {
  row: StripRow;
  begin: number;
  days: readonly Day[];
  now: number;
  isOpen: boolean;
  onToggle: () => void;
}) {
  const slots = useMemo(() => slotsOf(row), [row]);
  const owner =
    row.workflow === null
      ? `/agents/${encodeURIComponent(row.agent)}`
      : `/workflows/${encodeURIComponent(row.workflow)}`;
  return (
    <li className="rounded-lg border border-line bg-panel">
      <div className="flex flex-col gap-1 px-3 py-2 md:flex-row md:items-center md:gap-3">
        <div className="flex min-w-0 flex-wrap items-center gap-x-2 md:w-64 md:shrink-0">
          <Link to={owner} className="font-medium wrap-anywhere hover:underline">
            {row.workflow ?? row.agent}
          </Link>
          <button
            type="button"
            aria-expanded={isOpen}
            onClick={onToggle}
            className="min-h-8 text-left wrap-anywhere text-accent hover:underline"
          >
            {row.name}
          </button>
          <span className="font-mono text-xs text-faint">{row.rule ?? "no rule"}</span>
          {!row.enabled && <State status="disabled" />}
          {row.is_paused && <State status="paused" title="after failures in a row" />}
        </div>
        <div className="min-w-0 flex-1">
          <StripHead days={days} />
          <Strip slots={slots} begin={begin} days={days} now={now} />
        </div>
      </div>
      {isOpen && <ScheduleDetails row={row} slots={slots} />}
    </li>
  );
}

function endOf(begin: number): number {
  const end = new Date(begin);
  end.setDate(end.getDate() + DAYS);
  return end.getTime();
}

function isoOf(at: number): string {
  return new Date(at).toISOString();
}
