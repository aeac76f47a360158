import { useMutation, useQueryClient } from "@tanstack/react-query";

import { post } from "../api/client";
import type { Schemas, StatusDocument } from "../api/types";
import { useActing } from "../shell/acting";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Empty } from "../ui/Page";
import { Table } from "../ui/Table";
import { Ago, spanText } from "../ui/time";

/** The process that runs the fleet, and its workers. */
export function Daemon({ status }: { status: StatusDocument }) {
  const { daemon, workers } = status;
  const client = useQueryClient();
  const acting = useActing("admin");
  const reload = useMutation({
    mutationFn: () => post<Schemas["DaemonRow"]>("/reload"),
    onSuccess: ({ pending }) => {
      notify(pending.length === 0 ? "reloaded" : "reloaded; some of it waits for a person");
    },
    onError: notifyError,
    // A reload that fails has changed something too: what is wrong with the files.
    onSettled: () => client.invalidateQueries(),
  });
  return (
    <div className="flex flex-col gap-2 text-sm">
      {daemon === null ? (
        <Empty>No daemon is running.</Empty>
      ) : (
        <>
          <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <span>
              nightherd {daemon.version}, process {daemon.pid} on {daemon.host}, up{" "}
              {spanText(daemon.uptime_seconds)}
            </span>
            <span className="min-w-0 wrap-anywhere text-faint">
              configuration {daemon.config} of <Ago at={daemon.loaded_at} />
            </span>
            {daemon.is_draining && <span className="text-wait">finishes its jobs, then stops</span>}
            <Button
              {...acting}
              disabled={acting.disabled || reload.isPending}
              onClick={() => reload.mutate()}
            >
              Reload
            </Button>
          </p>
          {daemon.config_error?.problems.map((problem) => (
            <p
              key={`${problem.file}:${problem.line}:${problem.message}`}
              role="alert"
              className="wrap-anywhere text-bad"
            >
              Not loaded: {problem.file}:{problem.line}:{problem.column} {problem.message}
            </p>
          ))}
          {daemon.pending.length > 0 && (
            <ul aria-label="Waits for a person" className="list-disc pl-5 text-wait">
              {daemon.pending.map((line) => (
                <li key={line}>{line}</li>
              ))}
            </ul>
          )}
        </>
      )}
      {workers.length > 0 && (
        <Table
          label="Workers"
          rows={workers}
          rowKey={({ id }) => id}
          columns={[
            { head: "worker", cell: ({ id }) => <span className="font-mono text-xs">{id}</span> },
            { head: "on", cell: ({ host, pid }) => `${host}, process ${pid}` },
            { head: "started", cell: ({ started_at: at }) => <Ago at={at} /> },
            { head: "heartbeat", cell: ({ heartbeat_at: at }) => <Ago at={at} /> },
          ]}
        />
      )}
    </div>
  );
}
