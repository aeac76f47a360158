import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { get, post } from "../api/client";
import type { Schemas } from "../api/types";
import { useActing } from "../shell/acting";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Empty, Failure, Loading } from "../ui/Page";
import { State } from "../ui/Status";
import { Table } from "../ui/Table";
import { Ago } from "../ui/time";

type Document = Schemas["NotificationsDocument"];

/** Targets of notifications, and what was sent to them last. */
export function Notifications() {
  const client = useQueryClient();
  const acting = useActing("admin");
  const sent = useQuery({
    queryKey: ["notify"],
    queryFn: ({ signal }) => get<Document>("/notify", { limit: 10 }, signal),
    meta: { live: ["inbox"] },
  });
  const test = useMutation({
    mutationFn: (target: string) => post(`/notify/${encodeURIComponent(target)}/test`),
    onSuccess: (_, target) => notify(`sent a test to ${target}`),
    onError: notifyError,
    onSettled: () => void client.invalidateQueries({ queryKey: ["notify"] }),
  });
  if (sent.isPending) return <Loading />;
  if (sent.isError) return <Failure error={sent.error} retry={() => void sent.refetch()} />;
  const { targets, notifications } = sent.data;
  if (targets.length === 0) {
    return (
      <Empty>
        No target is set up: add <code>notify:</code> to the fleet file, or turn on notifications of
        this device under{" "}
        <Link to="/settings" className="text-accent underline">
          Settings
        </Link>
        .
      </Empty>
    );
  }
  return (
    <div className="flex flex-col gap-2">
      <Table
        label="Targets of notifications"
        rows={targets}
        rowKey={({ target }) => target}
        columns={[
          { head: "target", cell: ({ target }) => target },
          {
            head: "about",
            cell: ({ events }) => events?.join(", ") ?? "no longer in the fleet file",
          },
          {
            head: "health",
            cell: (row) =>
              row.is_failing ? (
                <span className="text-bad">
                  <State status="failed" /> {row.last_error}
                </span>
              ) : row.last_sent_at === null ? (
                "nothing sent yet"
              ) : (
                <Ago at={row.last_sent_at} />
              ),
          },
          { head: "waiting", cell: ({ waiting }) => waiting, isNumber: true },
          {
            head: "actions",
            cell: ({ target }) => (
              <Button
                aria-label={`Test ${target}`}
                {...acting}
                disabled={acting.disabled || test.isPending}
                onClick={() => test.mutate(target)}
              >
                Test
              </Button>
            ),
          },
        ]}
      />
      {notifications.length > 0 && (
        <ul aria-label="Newest notifications" className="text-sm">
          {notifications.map((row) => (
            <li key={row.id} className="flex flex-wrap gap-x-2 py-0.5">
              <State status={row.status} title={row.last_error ?? row.status} />
              <span className="wrap-anywhere">{row.subject}</span>
              <span className="text-faint">
                {row.target}, <Ago at={row.created_at} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
