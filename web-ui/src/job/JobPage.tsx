import { useLocation, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";

import { get } from "../api/client";
import { useAddressPart, useAddressSearch } from "../shell/address";
import { useShortcuts } from "../shell/shortcuts";
import { eventsOf, type Item } from "../transcript/items";
import { Transcript } from "../transcript/Transcript";
import { Button } from "../ui/Button";
import { Failure, Loading } from "../ui/Page";
import { Chat, type ForkPoint } from "./Chat";
import { isOpen } from "./documents";
import { JobActions } from "./JobActions";
import { JobDetails } from "./JobDetails";
import { JobHeader } from "./JobHeader";
import { TimelineView } from "./TimelineView";
import { useJob } from "./use_job";

interface Hit {
  job_id: string;
  seq: number | null;
}

/** One job: what it is, when it worked and why it did not, what was said, and how to continue. */
export default function JobPage() {
  const reference = useAddressPart("job");
  const { tab } = useAddressSearch();
  const { hash } = useLocation();
  const navigate = useNavigate();
  const { job, outline, store } = useJob(reference);
  const [fork, setFork] = useState<ForkPoint | null>(null);
  const at = useMemo(() => placeOf(hash), [hash]);
  const isDetails = tab === "details";

  const go = (seq: number) => void navigate({ to: `/jobs/${reference}`, hash: String(seq) });
  const show = (details: boolean) =>
    void navigate({ to: `/jobs/${reference}`, search: details ? { tab: "details" } : {} });
  useShortcuts([
    { keys: "d", label: "Details or transcript", group: "Job", run: () => show(!isDetails) },
  ]);

  const linkTo = useCallback((seq: number) => `${location.pathname}${location.search}#${seq}`, []);
  const extra = useCallback((item: Item) => <ForkButton item={item} onFork={setFork} />, []);
  const errors = useMemo(() => (outline.data?.errors ?? []).map((row) => row.seq), [outline.data]);

  if (job.isPending) return <Loading />;
  if (job.data === undefined || store === null) {
    return <Failure error={job.error} retry={() => void job.refetch()} />;
  }
  const { id, agent } = job.data;
  const searchAll = async (words: string) => {
    const hits = await get<Hit[]>("/search", { q: words, agent, limit: 100 });
    return hits.find((hit) => hit.job_id === id && hit.seq !== null)?.seq ?? null;
  };
  return (
    <div className="flex h-full min-h-0 flex-col">
      <title>{`${agent} ${id.slice(-6)} · nightherd`}</title>
      <JobHeader job={job.data} outline={outline.data} actions={<JobActions job={job.data} />} />
      {outline.data !== undefined && <TimelineView outline={outline.data} onGo={go} />}
      {isDetails ? (
        <>
          <div className="px-4 pt-2">
            <Button look="ghost" hint="d" onClick={() => show(false)}>
              Transcript
            </Button>
          </div>
          <JobDetails job={job.data} outline={outline.data} />
        </>
      ) : (
        <Transcript
          key={id}
          store={store}
          at={at}
          linkTo={linkTo}
          errors={errors}
          isLive={isOpen(job.data)}
          extra={extra}
          searchAll={searchAll}
          toolbar={
            <Button look="ghost" hint="d" onClick={() => show(true)}>
              Details
            </Button>
          }
        />
      )}
      <Chat job={job.data} fork={fork} onUnfork={() => setFork(null)} />
    </div>
  );
}

/** The event that the address names: `#1234`. */
function placeOf(hash: string): { seq: number } | null {
  const seq = Number(hash.replace(/^#/, ""));
  return Number.isInteger(seq) && seq > 0 ? { seq } : null;
}

/** Fork after a message of the conversation. */
function ForkButton({ item, onFork }: { item: Item; onFork: (point: ForkPoint) => void }) {
  const last = eventsOf(item).findLast(
    (event) => event.type !== "error" && event.end === true && typeof event.message === "number",
  );
  if (last === undefined || last.type === "error") return null;
  const point = { seq: last.seq, message: last.message ?? 0 };
  return (
    <button type="button" className="hover:text-ink" onClick={() => onFork(point)}>
      fork
    </button>
  );
}
