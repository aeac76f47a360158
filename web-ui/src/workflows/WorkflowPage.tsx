import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";

import { findDeclared, phasesOfDefinition } from "../graph/from_definition";
import { PhaseMap } from "../graph/PhaseMap";
import { RunRows } from "../runs/RunRows";
import { useRuns } from "../runs/use_runs";
import { useActing } from "../shell/acting";
import { useAddressPart, useAddressSearch } from "../shell/address";
import { useShortcuts } from "../shell/shortcuts";
import { Button } from "../ui/Button";
import { classes } from "../ui/classes";
import { Dialog } from "../ui/Dialog";
import { quoted } from "../ui/filter_text";
import { IS_WIDE, useMedia } from "../ui/media";
import { Empty, Failure, Loading, Page } from "../ui/Page";
import { useRowKeys } from "../ui/row_keys";
import { State } from "../ui/Status";
import { Tabs } from "../ui/Tabs";
import { timeText } from "../ui/time";
import { DeclaredPhase } from "./DeclaredPhase";
import { StartRun } from "./StartRun";
import { useSwitch, useWorkflow, type Workflow } from "./use_workflow";
import { WorkflowFacts } from "./WorkflowFacts";

const VIEWS = [
  ["graph", "Graph"],
  ["list", "List"],
] as const;
const SHOWN_RUNS = 10;

/** One workflow: its phases, what starts it, and its runs. */
export default function WorkflowPage() {
  const name = useAddressPart("workflow");
  const workflow = useWorkflow(name);
  if (workflow.isPending) return <Loading />;
  if (workflow.data === undefined) {
    return <Failure error={workflow.error} retry={() => void workflow.refetch()} />;
  }
  return <Shown key={name} workflow={workflow.data} />;
}

function Shown({ workflow }: { workflow: Workflow }) {
  const { name, definition } = workflow;
  const search = useAddressSearch();
  const navigate = useNavigate();
  const isNarrow = !useMedia(IS_WIDE);
  const [isStarting, setStarting] = useState(false);
  const starting = useStarting(workflow);
  const phases = useMemo(() => phasesOfDefinition(definition.phases), [definition]);
  const path = search["phase"] ?? null;
  const phase = path === null ? null : findDeclared(definition.phases, path);
  const view = VIEWS.find(([one]) => one === search["view"])?.[0] ?? (isNarrow ? "list" : "graph");
  const go = useCallback(
    (changed: Record<string, string | undefined>) =>
      void navigate({
        to: `/workflows/${encodeURIComponent(name)}`,
        search: (before: Record<string, string | undefined>) => ({ ...before, ...changed }),
        replace: true,
      }),
    [navigate, name],
  );
  const select = useCallback((to: string) => go({ phase: to }), [go]);
  const close = () => go({ phase: undefined });
  const group = "Workflow";
  useRowKeys(group, "run");
  useShortcuts([
    { keys: "s", label: "Start a run", group, run: () => !starting.disabled && setStarting(true) },
    { keys: "1", label: "Graph", group, run: () => go({ view: "graph" }) },
    { keys: "2", label: "List", group, run: () => go({ view: "list" }) },
    { keys: "Escape", label: "Close the phase", group, run: close },
  ]);
  return (
    <Page
      title={name}
      aside={
        <>
          <Switch workflow={workflow} />
          <Button look="primary" hint="s" {...starting} onClick={() => setStarting(true)}>
            Start a run
          </Button>
        </>
      }
    >
      <p className="flex flex-wrap items-center gap-2 text-sm text-soft">
        <State status={workflow.is_enabled ? "enabled" : "disabled"} />
        {workflow.is_overridden && (
          <span>
            by {workflow.updated_by ?? "unknown"}
            {workflow.updated_at !== null && `, ${timeText(workflow.updated_at)}`}
          </span>
        )}
        {workflow.description}
      </p>
      <Tabs
        label="Views of the workflow"
        tabs={VIEWS}
        current={view}
        onChange={(one) => go({ view: one })}
      />
      <div
        className={classes("grid items-start gap-4", phase !== null && "lg:grid-cols-[1fr_22rem]")}
      >
        <div className="min-w-0">
          <PhaseMap phases={phases} isList={view === "list"} selected={path} onSelect={select} />
        </div>
        {phase !== null && path !== null && !isNarrow && (
          <aside
            aria-label={`Phase ${path}`}
            className="sticky top-2 rounded-lg border border-line bg-panel p-3"
          >
            <div className="mb-2 flex items-baseline gap-2">
              <h2 className="font-semibold [overflow-wrap:anywhere]">{path}</h2>
              <Button look="ghost" className="ml-auto" aria-label="Close the phase" onClick={close}>
                ×
              </Button>
            </div>
            <DeclaredPhase phase={phase} />
          </aside>
        )}
      </div>
      {phase !== null && path !== null && isNarrow && (
        <Dialog title={path} onClose={close}>
          <div className="p-4">
            <DeclaredPhase phase={phase} />
          </div>
        </Dialog>
      )}
      <WorkflowFacts definition={definition} />
      <LastRuns name={name} />
      {isStarting && <StartRun workflow={workflow} onClose={() => setStarting(false)} />}
    </Page>
  );
}

/** Whether a run can be started by hand, and why not. */
function useStarting(workflow: Workflow): { disabled: boolean; title: string | undefined } {
  const acting = useActing();
  if (acting.disabled) return acting;
  if (!workflow.is_enabled) return { disabled: true, title: "The workflow is disabled" };
  if (!workflow.api)
    return { disabled: true, title: "Its file says that nobody starts it by hand" };
  return acting;
}

function Switch({ workflow }: { workflow: Workflow }) {
  const acting = useActing("admin");
  const change = useSwitch(workflow.name);
  const busy = { ...acting, disabled: acting.disabled || change.isPending };
  return (
    <>
      {workflow.is_overridden && (
        <Button look="ghost" {...busy} onClick={() => change.mutate(null)}>
          Reset
        </Button>
      )}
      <Button {...busy} onClick={() => change.mutate(!workflow.is_enabled)}>
        {workflow.is_enabled ? "Disable" : "Enable"}
      </Button>
    </>
  );
}

function LastRuns({ name }: { name: string }) {
  const q = `workflow:${quoted(name)}`;
  const runs = useRuns(q);
  const rows = runs.data?.pages[0]?.data ?? [];
  return (
    <section aria-label="Last runs" className="flex flex-col gap-2">
      <h2 className="text-xs font-semibold tracking-wide text-faint uppercase">Last runs</h2>
      {runs.isError && <Failure error={runs.error} retry={() => void runs.refetch()} />}
      {runs.isSuccess && rows.length === 0 && <Empty>It never ran.</Empty>}
      {rows.length > 0 && <RunRows rows={rows.slice(0, SHOWN_RUNS)} label="Last runs" />}
      {rows.length > SHOWN_RUNS && (
        <Link to="/runs" search={{ q }} className="text-sm text-accent underline">
          All its runs
        </Link>
      )}
    </section>
  );
}
