import { useNavigate } from "@tanstack/react-router";

import { StartButton } from "../jobs/StartButton";
import { useAddressSearch } from "../shell/address";
import { useMay } from "../shell/session";
import { Select } from "../ui/fields";
import { Failure, Loading, Page } from "../ui/Page";
import { Ago } from "../ui/time";
import { Beginning } from "./Beginning";
import { Ended } from "./Ended";
import { HealthLine } from "./HealthLine";
import { LiveList } from "./LiveList";
import { isQuiet, type Home } from "./live_rows";
import { NeedsYou } from "./NeedsYou";
import { NextSchedules } from "./NextSchedules";
import { Summary } from "./Summary";
import { useHome, useVisit } from "./use_home";

const PERIODS = [
  ["", "your last visit"],
  ["24h", "24 hours ago"],
  ["7d", "7 days ago"],
  ["30d", "30 days ago"],
] as const;

/** What happened while one was away, what needs one, what goes on and what comes next. */
export default function HomePage() {
  const { since = "" } = useAddressSearch();
  const navigate = useNavigate();
  const home = useHome(since);
  const mayStart = useMay("operator");
  useVisit();
  return (
    <Page title="Home" aside={mayStart && <StartButton />}>
      <div className="flex flex-wrap items-center gap-2 text-sm text-soft">
        <label htmlFor="since">Since</label>
        <Select
          id="since"
          className="min-h-10 md:min-h-8"
          value={since}
          onChange={(event) =>
            void navigate({ to: "/", search: { since: event.target.value || undefined } })
          }
          options={PERIODS}
        />
        {home.data !== undefined && <Since home={home.data} />}
      </div>
      {home.isPending && <Loading />}
      {home.isError && home.data === undefined && (
        <Failure error={home.error} retry={() => void home.refetch()} />
      )}
      {home.data !== undefined && <Shown home={home.data} />}
    </Page>
  );
}

function Since({ home }: { home: Home }) {
  return (
    <span>
      <Ago at={home.since} />
      {home.visited_at === null && " · this is your first visit"}
    </span>
  );
}

function Shown({ home }: { home: Home }) {
  const isEmpty = isQuiet(home);
  return (
    <>
      <HealthLine health={home.health} />
      {isEmpty ? <Beginning since={home.since} /> : <Summary home={home} />}
      <div className="grid grid-cols-1 items-start gap-x-4 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div className="min-w-0">
          <NeedsYou inbox={home.inbox} />
          {!isEmpty && <LiveList home={home} />}
        </div>
        <div className="min-w-0">
          <Ended home={home} />
          <NextSchedules schedules={home.next_schedules} />
        </div>
      </div>
    </>
  );
}
