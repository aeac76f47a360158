import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { useActing } from "../shell/acting";
import { useAddressSearch } from "../shell/address";
import { chooseFile } from "../shell/chosen_file";
import { Button } from "../ui/Button";
import { FilterField, type Chip } from "../ui/FilterField";
import { Empty, Failure, Loading, Page } from "../ui/Page";
import { focusedRow, useRowKeys } from "../ui/row_keys";
import { ShowMore } from "../ui/ShowMore";
import { CleanupDialog } from "./CleanupDialog";
import { CompareBar } from "./CompareBar";
import { SessionRows } from "./SessionRows";
import { usePicked } from "./use_picked";
import { SESSION_FILTER_KEYS, useSessions } from "./use_sessions";

const CHIPS: readonly Chip[] = [
  { name: "in use", key: "status", value: "active" },
  { name: "paused", key: "status", value: "paused" },
  { name: "completed", key: "status", value: "completed" },
  { name: "expired", key: "status", value: "expired" },
  { name: "persistent", key: "mode", value: "persistent" },
  { name: "per channel", key: "mode", value: "per_channel" },
  { name: "last day", key: "since", value: "1d", isOnly: true },
  { name: "last week", key: "since", value: "7d", isOnly: true },
];

/** All sessions, with a filter in the address; two of them can be compared. */
export default function SessionsPage() {
  const { q = "" } = useAddressSearch();
  const navigate = useNavigate();
  const sessions = useSessions(q);
  const picks = usePicked();
  const cleaning = useActing("admin");
  const [isCleaning, setCleaning] = useState(false);
  const rows = sessions.data?.pages.flatMap((page) => page.data) ?? [];
  const group = "Sessions";
  useRowKeys(group, "session", [
    {
      keys: "x",
      label: "Select the session to compare it",
      group,
      run: () => {
        const id = focusedRow();
        if (id !== null) picks.toggle(id);
      },
    },
    {
      keys: "=",
      label: "Compare the two selected sessions",
      group,
      run: () => {
        const [left, right] = picks.picked;
        if (left === undefined || right === undefined) return;
        void navigate({ to: `/compare/${left}/${right}` });
      },
    },
  ]);
  return (
    <Page
      title="Sessions"
      aside={
        <>
          <Button onClick={chooseFile}>Open a file …</Button>
          <Button {...cleaning} onClick={() => setCleaning(true)}>
            Clean up
          </Button>
        </>
      }
    >
      <FilterField
        value={q}
        onChange={(filter) =>
          void navigate({ to: "/sessions", search: filter === "" ? {} : { q: filter } })
        }
        chips={CHIPS}
        keys={SESSION_FILTER_KEYS}
        placeholder="agent:coder status:paused since:2d words"
        error={sessions.error}
      />
      {sessions.isPending && <Loading />}
      {sessions.isError && rows.length === 0 && (
        <Failure error={sessions.error} retry={() => void sessions.refetch()} />
      )}
      {sessions.isSuccess && rows.length === 0 && (
        <Empty>
          {q === "" ? "No session yet: the first job begins one." : "No session fits this filter."}
        </Empty>
      )}
      {rows.length > 0 && <SessionRows rows={rows} picks={picks} />}
      <ShowMore pages={sessions} />
      <CompareBar picks={picks} />
      {isCleaning && <CleanupDialog onClose={() => setCleaning(false)} />}
    </Page>
  );
}
