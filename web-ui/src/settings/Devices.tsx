import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { get, post, remove } from "../api/client";
import type { Data } from "../api/types";
import { useActing } from "../shell/acting";
import { useMe } from "../shell/session";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Failure, Loading, Section } from "../ui/Page";
import { State } from "../ui/Status";
import { Table } from "../ui/Table";
import { Ago } from "../ui/time";
import {
  keepSubscription,
  readSubscription,
  subscribe,
  unsubscribe,
  whyNoPush,
  type PushTopic,
} from "./push";

type Push = Data<"/v1/push">;
type Subscription = Push["subscriptions"][number];
interface Tested {
  sent: boolean;
  error: string | null;
}
const TOPICS: readonly (readonly [PushTopic, string])[] = [
  ["inbox", "something waits for me"],
  ["failures", "a job or run failed"],
];

/** Notifications on this device, and the person's other devices. */
export function Devices() {
  const client = useQueryClient();
  const acting = useActing("viewer");
  const me = useMe();
  const push = useQuery({
    queryKey: ["push"],
    queryFn: ({ signal }) => get<Push>("/push", undefined, signal),
  });
  const [mine, setMine] = useState(readSubscription);
  const keep = (kept: { id: string; topics: PushTopic[] } | null) => {
    keepSubscription(kept === null ? null : { ...kept, login: me.expires_at ?? "" });
    setMine(kept?.id ?? null);
    void client.invalidateQueries({ queryKey: ["push"] });
  };
  const switchOn = useMutation({
    mutationFn: (topics: PushTopic[]) =>
      subscribe<Subscription>(push.data?.public_key ?? "", topics),
    onSuccess: ({ id, topics }) => keep({ id, topics }),
    onError: notifyError,
  });
  const switchOff = useMutation({
    mutationFn: async (id: string) => {
      if (id === mine) await unsubscribe(id);
      else await remove(`/push/subscriptions/${encodeURIComponent(id)}`);
      return id;
    },
    onSuccess: (id) => keep(id === mine ? null : keptOf(push.data, mine)),
    onError: notifyError,
  });
  const test = useMutation({
    mutationFn: (id: string) => post<Tested>(`/push/subscriptions/${encodeURIComponent(id)}/test`),
    onSuccess: ({ sent, error }) => {
      if (sent) notify("sent; it should arrive in a moment");
      else notifyError(new Error(error ?? "it was not taken"));
      void client.invalidateQueries({ queryKey: ["push"] });
    },
    onError: notifyError,
  });

  if (push.isPending) return <Loading />;
  if (push.isError) return <Failure error={push.error} retry={() => void push.refetch()} />;
  const reason = push.data.reason ?? whyNoPush();
  const own = push.data.subscriptions.find(({ id }) => id === mine);
  const topics = (own?.topics ?? []) as PushTopic[];
  const choose = (topic: PushTopic, isOn: boolean) => {
    const next = isOn ? [...topics, topic] : topics.filter((other) => other !== topic);
    if (next.length > 0) switchOn.mutate(next);
    else if (own !== undefined) switchOff.mutate(own.id);
  };
  const isBusy = acting.disabled || switchOn.isPending || switchOff.isPending;
  return (
    <Section title="Notifications on this device">
      <div className="mb-3 flex flex-col gap-1 text-sm">
        {reason !== null && <p className="text-soft">{reason}</p>}
        {TOPICS.map(([topic, text]) => (
          <label key={topic} className="flex min-h-10 items-center gap-2">
            <input
              type="checkbox"
              className="size-5 accent-accent"
              checked={topics.includes(topic)}
              disabled={isBusy || reason !== null}
              onChange={(event) => choose(topic, event.target.checked)}
            />
            Tell me when {text}
          </label>
        ))}
        <p className="text-xs text-faint">
          A notification has a title and an address of this dashboard, nothing else. It needs HTTPS
          or localhost.
        </p>
      </div>
      {push.data.subscriptions.length > 0 && (
        <Table
          label="Your devices"
          rows={push.data.subscriptions}
          rowKey={({ id }) => id}
          columns={[
            {
              head: "device",
              cell: ({ id, label }) => (id === mine ? `${label} (this one)` : label),
            },
            { head: "about", cell: (row) => row.topics.join(", ") },
            {
              head: "last sent",
              cell: (row) =>
                row.is_failing ? (
                  <State status="error" title={row.last_error ?? ""} />
                ) : row.last_sent_at === null ? (
                  "never"
                ) : (
                  <Ago at={row.last_sent_at} />
                ),
            },
            {
              head: "actions",
              cell: (row) => (
                <span className="flex gap-2">
                  <Button
                    aria-label={`Test ${row.label}`}
                    disabled={isBusy || test.isPending}
                    onClick={() => test.mutate(row.id)}
                  >
                    Test
                  </Button>
                  <Button
                    look="danger"
                    aria-label={`Remove ${row.label}`}
                    disabled={isBusy}
                    onClick={() => switchOff.mutate(row.id)}
                  >
                    Remove
                  </Button>
                </span>
              ),
            },
          ]}
        />
      )}
    </Section>
  );
}

function keptOf(push: Push | undefined, id: string | null) {
  const own = push?.subscriptions.find((row) => row.id === id);
  return own === undefined ? null : { id: own.id, topics: own.topics as PushTopic[] };
}
