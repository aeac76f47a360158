import { useLocation, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";

import { get } from "../api/client";
import { useAddressPart, useAddressSearch } from "../shell/address";
import { useShortcuts } from "../shell/shortcuts";
import type { Item } from "../transcript/items";
import { Transcript } from "../transcript/Transcript";
import { useMedia } from "../ui/media";
import { Failure, Loading } from "../ui/Page";
import { Tabs } from "../ui/Tabs";
import { Chat } from "./Chat";
import { CopyResume } from "./CopyResume";
import { isOpen } from "./documents";
import { ForkButton } from "./ForkButton";
import type { ForkPoint } from "./fork_point";
import { JobActions } from "./JobActions";
import { JobDetails } from "./JobDetails";
import { JobHeader } from "./JobHeader";
import { Asked, JobInbox, useAsked } from "./JobInbox";
import { OutlinePane } from "./OutlinePane";
import { TimelineView } from "./TimelineView";
import { useJob } from "./use_job";

interface Hit {
  job_id: string;
  seq: number | null;
}

/** Wide enough for the outline, the transcript and the details beside each other. */
const THREE_PANES = "(min-width: 80rem)";
const TABS = [
  ["transcript", "Transcript"],
  ["outline", "Outline"],
  ["details", "Details"],
] as const;
type Tab = (typeof TABS)[number][0] | "asked";

/** One job: what it is, when it worked and why it did not, what was said, and how to continue. */
export default function JobPage() {
  const reference = useAddressPart("job");
  const search = useAddressSearch();
  const { hash } = useLocation();
  const navigate = useNavigate();
  const isWide = useMedia(THREE_PANES);
  const { job, outline, store, lastAt } = useJob(reference);
  const [fork, setFork] = useState<ForkPoint | null>(null);
  const at = useMemo(() => placeOf(hash), [hash]);
  const asked = useAsked(job.data);
  const tabs: readonly (readonly [Tab, string])[] =
    asked.length > 0 ? [["asked", `Waits for you (${asked.length})`], ...TABS] : TABS;
  // Who opens a job that waits for a person is that person, unless the address says where to look.
  const usual = asked.length > 0 && hash === "" ? "asked" : "transcript";
  const tab = tabs.find(([name]) => name === search.tab)?.[0] ?? usual;

  const go = (seq: number) => void navigate({ to: `/jobs/${reference}`, hash: String(seq) });
  const show = (next: Tab) => {
    const query = next === usual ? {} : { tab: next };
    void navigate({ to: `/jobs/${reference}`, search: query, replace: true });
  };
  const startFork = useCallback((point: ForkPoint) => {
    setFork(point);
    document.getElementById("chat")?.focus();
  }, []);
  const group = "Job";
  useShortcuts([
    {
      keys: "d",
      label: "Details or transcript",
      group,
      run: () => {
        if (isWide) document.getElementById("details")?.focus();
        else show(tab === "details" ? "transcript" : "details");
      },
    },
    {
      keys: "m",
      label: "Write a message",
      group,
      run: () => document.getElementById("chat")?.focus(),
    },
  ]);

  const linkTo = useCallback((seq: number) => `${location.pathname}${location.search}#${seq}`, []);
  const extra = useCallback(
    (item: Item) => <ForkButton item={item} onFork={startFork} />,
    [startFork],
  );
  const isRunning = job.data?.status === "running";
  const lostSince = job.data?.lost?.since ?? null;
  const progress = useMemo(
    () => (isRunning ? { lastAt, lostSince } : null),
    [isRunning, lastAt, lostSince],
  );
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
  const transcript = (
    <Transcript
      key={id}
      store={store}
      at={at}
      linkTo={linkTo}
      errors={errors}
      isLive={isOpen(job.data)}
      extra={extra}
      searchAll={searchAll}
    />
  );
  const outlinePane = outline.data && (
    <OutlinePane outline={outline.data} progress={progress} onGo={go} />
  );
  const details = <JobDetails job={job.data} onFork={startFork} />;
  const scroll = "min-h-0 overflow-y-auto";
  return (
    <div className="flex h-full min-h-0 flex-col">
      <title>{`${agent} ${id.slice(-6)} · nightherd`}</title>
      <JobHeader
        job={job.data}
        lastAt={lastAt}
        actions={
          <>
            <CopyResume job={job.data} />
            <JobActions job={job.data} />
          </>
        }
      />
      {outline.data !== undefined && (isWide || tab === "outline") && (
        <TimelineView outline={outline.data} progress={progress} onGo={go} />
      )}
      {isWide ? (
        <div className="flex min-h-0 flex-1">
          <section
            aria-label="Outline"
            tabIndex={0}
            className={`${scroll} w-60 shrink-0 border-r border-line`}
          >
            {outlinePane}
          </section>
          <div className="flex min-w-0 flex-1 flex-col">
            {transcript}
            <JobInbox items={asked} />
          </div>
          <section
            id="details"
            aria-label="Details"
            tabIndex={0}
            className={`${scroll} w-96 shrink-0 border-l border-line px-4 pt-3`}
          >
            {details}
          </section>
        </div>
      ) : (
        <>
          <Tabs label="Views of the job" tabs={tabs} current={tab} onChange={show} />
          {tab === "asked" && (
            <div className={`${scroll} flex-1`}>
              <Asked items={asked} />
            </div>
          )}
          {tab === "transcript" && transcript}
          {tab === "outline" && <div className={`${scroll} flex-1`}>{outlinePane}</div>}
          {tab === "details" && <div className={`${scroll} flex-1 px-4 pt-3`}>{details}</div>}
        </>
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
