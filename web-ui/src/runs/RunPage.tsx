import { useNavigate } from "@tanstack/react-router";
import { useCallback, useState } from "react";

import { waitText } from "../graph/from_run";
import { findPhase } from "../graph/phase";
import { PhaseMap } from "../graph/PhaseMap";
import { useAddressPart, useAddressSearch } from "../shell/address";
import { useShortcuts } from "../shell/shortcuts";
import { Button } from "../ui/Button";
import { classes } from "../ui/classes";
import { Dialog } from "../ui/Dialog";
import { IS_WIDE, useMedia } from "../ui/media";
import { Empty, Failure, Loading } from "../ui/Page";
import { Tabs } from "../ui/Tabs";
import { eventsOfRun, findNode, type RunDocument } from "./documents";
import { PhaseDetail } from "./PhaseDetail";
import { RunActions, useRunActs, type RunDialogName } from "./RunActions";
import { ForkDialog, RaiseDialog, SignalDialog } from "./RunDialogs";
import { RunEvents } from "./RunEvents";
import { RunFacts } from "./RunFacts";
import { RunHeader } from "./RunHeader";
import { specsOf } from "./run_inputs";
import { RunTimelineView } from "./RunTimelineView";
import { useDefinition, usePhases, useRun } from "./use_run";

const VIEWS = [
  ["graph", "Graph"],
  ["list", "List"],
  ["timeline", "Timeline"],
  ["events", "Events"],
  ["facts", "Facts"],
] as const;
type View = (typeof VIEWS)[number][0];

/** One run: its phases as they are now, and what can be done with them. */
export default function RunPage() {
  const reference = useAddressPart("run");
  const run = useRun(reference);
  if (run.isPending) return <Loading />;
  if (run.data === undefined) {
    return <Failure error={run.error} retry={() => void run.refetch()} />;
  }
  return <Shown key={run.data.id} run={run.data} asOf={run.dataUpdatedAt} reference={reference} />;
}

function Shown({ run, asOf, reference }: { run: RunDocument; asOf: number; reference: string }) {
  const search = useAddressSearch();
  const navigate = useNavigate();
  const isNarrow = !useMedia(IS_WIDE);
  const definition = useDefinition(run);
  const phases = usePhases(run, asOf, definition);
  const acts = useRunActs(run);
  const [dialog, setDialog] = useState<{ name: RunDialogName; about: string | null } | null>(null);
  const view =
    VIEWS.find(([name]) => name === search["view"])?.[0] ?? (isNarrow ? "list" : "graph");
  const path = search["phase"] ?? null;
  const phase = path === null ? null : findPhase(phases, path);

  const go = useCallback(
    (changed: Record<string, string | undefined>) =>
      void navigate({
        to: `/runs/${reference}`,
        search: (before: Record<string, string | undefined>) => ({ ...before, ...changed }),
        replace: true,
      }),
    [navigate, reference],
  );
  const select = useCallback((to: string) => go({ phase: to }), [go]);
  const show = (to: View) => go({ view: to });
  useShortcuts([
    ...VIEWS.map(([name, label], at) => ({
      keys: String(at + 1),
      label,
      group: "Run",
      run: () => show(name),
    })),
    { keys: "Escape", label: "Close the phase", group: "Run", run: () => go({ phase: undefined }) },
  ]);

  const specs = definition?.inputs ?? specsOf(run.inputs);
  const open = (name: RunDialogName, about: string | null = null) => setDialog({ name, about });
  const close = () => setDialog(null);
  const detail = phase !== null && (
    <PhaseDetail
      key={phase.path}
      run={run}
      node={findNode(run.nodes, phase.path)}
      phase={phase}
      onFork={(at) => open("fork", at)}
      onSignal={(event) => open("signal", event)}
    />
  );
  return (
    <div className="mx-auto flex w-full max-w-7xl flex-col gap-4 px-4 py-4">
      <title>{`${run.workflow} ${run.id.slice(-6)} · nightherd`}</title>
      <RunHeader
        run={run}
        actions={
          <RunActions run={run} acts={acts} hasEvents={eventsOfRun(run).length > 0} onOpen={open} />
        }
      />
      <Waits run={run} onSelect={select} />
      <Tabs label="Views of the run" tabs={VIEWS} current={view} onChange={show} />
      <div className={classes("grid items-start gap-4", detail && "lg:grid-cols-[1fr_24rem]")}>
        <div className="min-w-0">
          {phases.length === 0 && ["graph", "list"].includes(view) && (
            <Empty>What this run runs is not on record.</Empty>
          )}
          {(view === "graph" || view === "list") && (
            <PhaseMap phases={phases} isList={view === "list"} selected={path} onSelect={select} />
          )}
          {view === "timeline" && <RunTimelineView run={run} selected={path} onSelect={select} />}
          {view === "events" && <RunEvents run={run} asOf={asOf} />}
          {view === "facts" && <RunFacts run={run} />}
        </div>
        {detail && !isNarrow && (
          <aside
            aria-label={`Phase ${phase.path}`}
            className="sticky top-2 max-h-[calc(100dvh-1rem)] overflow-y-auto rounded-lg border border-line bg-panel p-3"
          >
            <div className="mb-2 flex items-baseline gap-2">
              <h2 className="font-semibold [overflow-wrap:anywhere]">{phase.path}</h2>
              <Button
                look="ghost"
                className="ml-auto"
                aria-label="Close the phase"
                onClick={() => go({ phase: undefined })}
              >
                ×
              </Button>
            </div>
            {detail}
          </aside>
        )}
      </div>
      {detail && isNarrow && dialog === null && (
        <Dialog title={phase.path} onClose={() => go({ phase: undefined })}>
          <div className="p-4">{detail}</div>
        </Dialog>
      )}
      {dialog?.name === "fork" && (
        <ForkDialog run={run} specs={specs} at={dialog.about} acts={acts} onClose={close} />
      )}
      {dialog?.name === "signal" && (
        <SignalDialog run={run} event={dialog.about} acts={acts} onClose={close} />
      )}
      {dialog?.name === "raise" && <RaiseDialog run={run} acts={acts} onClose={close} />}
    </div>
  );
}

/** What the run waits for, each with the way to its phase. */
function Waits({ run, onSelect }: { run: RunDocument; onSelect: (path: string) => void }) {
  const waits = run.waits_for.filter(({ for: kind }) => kind !== "job" && kind !== "worker");
  const others = run.waits_for.length - waits.length;
  if (run.waits_for.length === 0) return null;
  return (
    <ul aria-label="What it waits for" className="flex flex-col gap-1 text-sm">
      {waits.slice(0, 8).map((wait) => (
        <li
          key={wait.phase}
          className="flex flex-wrap items-center gap-x-2 rounded-md bg-wait-soft px-3 py-1 text-wait"
        >
          <span className="min-w-0 [overflow-wrap:anywhere]">
            {wait.phase} {waitText(wait)}
          </span>
          <button
            type="button"
            className="ml-auto min-h-10 font-medium underline md:min-h-8"
            onClick={() => onSelect(wait.phase)}
          >
            {wait.item_id === null ? "Show" : "Answer"}
            <span className="sr-only"> {wait.phase}</span>
          </button>
        </li>
      ))}
      {others > 0 && (
        <li className="text-soft">
          {others === 1 ? "1 phase waits" : `${others} phases wait`} for a worker or another job
        </li>
      )}
    </ul>
  );
}
