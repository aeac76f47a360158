import { Link, useNavigate } from "@tanstack/react-router";

import { useAddressSearch } from "../shell/address";
import { FilterField, type Chip } from "../ui/FilterField";
import { Empty, Failure, Loading, Page } from "../ui/Page";
import { useRowKeys } from "../ui/row_keys";
import { ShowMore } from "../ui/ShowMore";
import { RunRows } from "./RunRows";
import { RUN_FILTER_KEYS, useRuns } from "./use_runs";

const CHIPS: readonly Chip[] = [
  { name: "running", key: "status", value: "running" },
  { name: "paused", key: "status", value: "paused" },
  { name: "queued", key: "status", value: "queued" },
  { name: "failed", key: "status", value: "failed" },
  { name: "succeeded", key: "status", value: "succeeded" },
  { name: "last day", key: "since", value: "1d", isOnly: true },
  { name: "last week", key: "since", value: "7d", isOnly: true },
];

/** All runs of workflows, with a filter in the address. */
export default function RunsPage() {
  const { q = "" } = useAddressSearch();
  const navigate = useNavigate();
  const runs = useRuns(q);
  const rows = runs.data?.pages.flatMap((page) => page.data) ?? [];
  useRowKeys("Runs", "run");
  return (
    <Page title="Runs">
      <FilterField
        value={q}
        onChange={(filter) =>
          void navigate({ to: "/runs", search: filter === "" ? {} : { q: filter } })
        }
        chips={CHIPS}
        keys={RUN_FILTER_KEYS}
        placeholder="workflow:build status:failed since:2d words"
        error={runs.error}
      />
      {runs.isPending && <Loading />}
      {runs.isError && rows.length === 0 && (
        <Failure error={runs.error} retry={() => void runs.refetch()} />
      )}
      {runs.isSuccess && rows.length === 0 && (
        <Empty>
          {q === "" ? (
            <>
              No workflow has run yet. <Link to="/workflows">Start one</Link>.
            </>
          ) : (
            "No run fits this filter."
          )}
        </Empty>
      )}
      {rows.length > 0 && <RunRows rows={rows} label="Runs" />}
      <ShowMore pages={runs} />
    </Page>
  );
}
