import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { get, post } from "../api/client";
import { useIntents } from "../api/intent";
import type { JobRow, Schemas } from "../api/types";
import { useActing } from "../shell/acting";
import { useMay } from "../shell/session";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { TextInput } from "../ui/fields";
import { Failure, Loading } from "../ui/Page";
import { Ago, timeText } from "../ui/time";
import { editableRule } from "./rule_text";
import type { Slot, StripRow } from "./slots";

type Schedule = Schemas["ScheduleDocument"];
const SHOWN = 25;

/** One schedule: why it fires or not, what can be done, and its slots in words. */
export function ScheduleDetails({ row, slots }: { row: StripRow; slots: readonly Slot[] }) {
  const path = `/schedules/${encodeURIComponent(row.agent)}/${encodeURIComponent(row.name)}`;
  const schedule = useQuery({
    queryKey: ["schedule", row.id],
    queryFn: ({ signal }) => get<Schedule>(path, undefined, signal),
    meta: { live: ["schedule"] },
  });
  if (schedule.isPending) return <Loading />;
  if (schedule.isError) {
    return <Failure error={schedule.error} retry={() => void schedule.refetch()} />;
  }
  const { data } = schedule;
  const nearest = slots.findIndex((slot) => slot.tone === "planned");
  const past = slots.slice(0, nearest < 0 ? slots.length : nearest).toReversed();
  return (
    <div className="flex flex-col gap-3 border-t border-line p-3 text-sm">
      <ul aria-label="Why" className="list-disc pl-5 text-soft">
        <li>{data.why.last}</li>
        {data.why.next.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      <p className="text-xs text-faint">
        {data.origin !== null && `declared in ${data.origin.file}:${data.origin.line}`}
        {data.timezone !== null && `, ${data.timezone}`}
        {data.override !== null &&
          `; changed here by ${data.override.updated_by ?? "unknown"} ${timeText(data.override.updated_at)}`}
        {data.consecutive_failures > 0 && `; ${data.consecutive_failures} failures in a row`}
      </p>
      <Actions schedule={data} path={path} />
      <ol aria-label="Slots" className="flex max-h-64 flex-col overflow-y-auto" tabIndex={0}>
        {[
          ...slots
            .slice(nearest < 0 ? slots.length : nearest)
            .slice(0, 3)
            .toReversed(),
          ...past,
        ]
          .slice(0, SHOWN)
          .map((slot) => (
            <li key={slot.id} className="flex flex-wrap gap-x-3 py-0.5">
              <span className="w-44 shrink-0 text-faint">{timeText(slot.due_at)}</span>
              <span className="wrap-anywhere">{slot.text}</span>
              {slot.to !== null && (
                <Link to={slot.to} className="text-accent hover:underline">
                  {slot.to.startsWith("/runs") ? "run" : "job"}
                </Link>
              )}
            </li>
          ))}
      </ol>
      {(row.is_past_cut || past.length > SHOWN) && (
        <Link
          to="/jobs"
          search={{ q: `agent:${row.agent} schedule:${row.id}` }}
          className="text-xs text-accent hover:underline"
        >
          All its jobs
        </Link>
      )}
    </div>
  );
}

function Actions({ schedule, path }: { schedule: Schedule; path: string }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const running = useActing("operator");
  const changing = useActing("admin");
  const mayChange = useMay("admin");
  const intents = useIntents();
  const [rule, setRule] = useState<string | null>(null);
  const act = useMutation({
    mutationFn: ({ verb, body }: { verb: string; body?: unknown }) =>
      post<Partial<JobRow>>(`${path}/${verb}`, body, { key: intents.keyOf({ verb, body }) }),
    onSuccess: (made, { verb, body }) => {
      intents.done({ verb, body });
      setRule(null);
      void client.invalidateQueries({ queryKey: ["schedule"] });
      void client.invalidateQueries({ queryKey: ["slots"] });
      if (verb === "run" && made.id !== undefined) void navigate({ to: `/jobs/${made.id}` });
      else notify(`${schedule.id}: ${verb}`);
    },
    onError: notifyError,
  });
  const mayNot = { ...changing, disabled: changing.disabled || act.isPending };
  if (rule !== null) {
    return (
      <form
        className="flex flex-wrap gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          act.mutate({ verb: "set", body: { rule } });
        }}
      >
        <TextInput
          aria-label="Rule"
          value={rule}
          onChange={(event) => setRule(event.target.value)}
          placeholder="0 3 * * * or 30m"
        />
        <Button
          look="primary"
          type="submit"
          {...mayNot}
          disabled={mayNot.disabled || rule.trim() === ""}
        >
          Set
        </Button>
        <Button onClick={() => setRule(null)}>Cancel</Button>
      </form>
    );
  }
  return (
    <div className="flex flex-wrap gap-2">
      {schedule.workflow === null ? (
        <Button
          look="primary"
          {...running}
          disabled={running.disabled || act.isPending}
          onClick={() => act.mutate({ verb: "run" })}
        >
          Run now
        </Button>
      ) : (
        <Link to={`/workflows/${schedule.workflow}`} className="self-center text-accent">
          workflow {schedule.workflow}
        </Link>
      )}
      <Button
        {...mayNot}
        onClick={() => act.mutate({ verb: schedule.enabled ? "disable" : "enable" })}
      >
        {schedule.enabled ? "Disable" : "Enable"}
      </Button>
      <Button {...mayNot} onClick={() => setRule(editableRule(schedule.rule))}>
        Change rule
      </Button>
      {schedule.override !== null && (
        <Button {...mayNot} onClick={() => act.mutate({ verb: "reset" })}>
          Back to the fleet file
        </Button>
      )}
      {schedule.next_run_at !== null && (
        <span className="self-center text-faint">
          next <Ago at={schedule.next_run_at} />
        </span>
      )}
      {!mayChange && (
        <span className="self-center text-xs text-faint">Admins change schedules.</span>
      )}
    </div>
  );
}
