import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { ApiProblem } from "../api/problem";
import { useAddressSearch } from "../shell/address";
import { useShortcuts } from "../shell/shortcuts";
import { FilterField, type Chip } from "../ui/FilterField";
import { IS_WIDE, useMedia } from "../ui/media";
import { Empty, Failure, Loading, Page } from "../ui/Page";
import { ShowMore } from "../ui/ShowMore";
import { BulkBar } from "./BulkBar";
import { JobCards } from "./JobCards";
import { JobTable } from "./JobTable";
import { linkId } from "./link_id";
import { NOTHING, toggled, toggledAll, type Selection } from "./selection";
import { StartButton } from "./StartButton";
import { FILTER_KEYS, useJobs } from "./use_jobs";

const CHIPS: readonly Chip[] = [
  { name: "running", key: "status", value: "running" },
  { name: "queued", key: "status", value: "pending" },
  { name: "suspended", key: "status", value: "suspended" },
  { name: "failed", key: "status", value: "failed" },
  { name: "completed", key: "status", value: "completed" },
  { name: "last day", key: "since", value: "1d", isOnly: true },
  { name: "last week", key: "since", value: "7d", isOnly: true },
  { name: "over $1", key: "cost", value: ">1", isOnly: true },
];

/** All jobs, with a filter in the address and actions for many at once. */
export default function JobsPage() {
  const { q = "" } = useAddressSearch();
  const navigate = useNavigate();
  const isWide = useMedia(IS_WIDE);
  const jobs = useJobs(q);
  const [chosen, setChosen] = useState({ q, selection: NOTHING });
  const selection = chosen.q === q ? chosen.selection : NOTHING;
  const setSelection = (next: Selection) => setChosen({ q, selection: next });
  const rows = jobs.data?.pages.flatMap((page) => page.data) ?? [];
  const ids = rows.map(({ id }) => id);

  const move = (step: 1 | -1) => {
    const place = ids.indexOf(focusedJob() ?? "");
    const next = place < 0 ? ids[0] : ids[place + step];
    if (next !== undefined) document.getElementById(linkId(next))?.focus();
  };
  const group = "Jobs";
  useShortcuts([
    { keys: "j", label: "Next job", group, run: () => move(1) },
    { keys: "k", label: "Previous job", group, run: () => move(-1) },
    {
      keys: "x",
      label: "Select the job",
      group,
      run: () => {
        const id = focusedJob();
        if (id !== null) setSelection(toggled(selection, id));
      },
    },
    {
      keys: "X",
      label: "Select all jobs that are shown",
      group,
      run: () => setSelection(toggledAll(selection, ids)),
    },
    {
      keys: "f",
      label: "Filter",
      group,
      run: () => document.querySelector<HTMLInputElement>("main input[type=search]")?.focus(),
    },
  ]);

  const Rows = isWide ? JobTable : JobCards;
  return (
    <Page title="Jobs" aside={<StartButton />}>
      <FilterField
        value={q}
        onChange={(filter) =>
          void navigate({ to: "/jobs", search: filter === "" ? {} : { q: filter } })
        }
        chips={CHIPS}
        keys={FILTER_KEYS}
        placeholder="agent:coder status:failed cost:>1 since:2d words"
        error={jobs.error}
      />
      {jobs.isPending && <Loading />}
      {jobs.isError && rows.length === 0 && !isUnclear(jobs.error) && (
        <Failure error={jobs.error} retry={() => void jobs.refetch()} />
      )}
      {jobs.isSuccess && rows.length === 0 && (
        <Empty>{q === "" ? "No job has run yet. Start one." : "No job fits this filter."}</Empty>
      )}
      {rows.length > 0 && <Rows rows={rows} selection={selection} onSelect={setSelection} />}
      <ShowMore pages={jobs} />
      <BulkBar
        selection={selection}
        onSelect={setSelection}
        shown={ids}
        hasMore={jobs.hasNextPage}
        q={q}
      />
    </Page>
  );
}

/** Whether the filter itself is wrong: its field says how. */
function isUnclear(error: Error): boolean {
  return error instanceof ApiProblem && error.status === 400;
}

function focusedJob(): string | null {
  const row = document.activeElement?.closest("[data-job]");
  return row?.getAttribute("data-job") ?? null;
}
