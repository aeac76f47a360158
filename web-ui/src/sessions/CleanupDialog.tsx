import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { post } from "../api/client";
import { messageOf } from "../api/problem";
import type { Schemas } from "../api/types";
import { useActing } from "../shell/acting";
import { notify } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Field, TextInput } from "../ui/fields";

type Cleanup = Schemas["SessionCleanup"];
const SHOWN = 20;

/** Clean up sessions that expired, or that ended long ago: first what it would be, then it. */
export function CleanupDialog({ onClose }: { onClose: () => void }) {
  const [age, setAge] = useState("");
  const [plan, setPlan] = useState<{ age: string; ids: string[] } | null>(null);
  const client = useQueryClient();
  const acting = useActing("admin");
  const clean = useMutation({
    mutationFn: (isDry: boolean) =>
      post<Cleanup>("/sessions/cleanup", {
        older_than: age.trim() === "" ? null : age.trim(),
        dry_run: isDry,
      }),
    onSuccess: ({ is_dry_run: isDry, removed, kept }) => {
      if (isDry) {
        setPlan({ age, ids: removed });
        return;
      }
      void client.invalidateQueries({ queryKey: ["sessions"] });
      const rest = kept.length === 0 ? "" : `; ${kept.length} are in use`;
      notify(`${countText(removed.length)} cleaned up${rest}.`);
      onClose();
    },
  });
  const isPlanned = plan !== null && plan.age === age;
  const busy = { title: acting.title, disabled: acting.disabled || clean.isPending };
  return (
    <Dialog title="Clean up sessions" onClose={onClose}>
      <form
        className="flex flex-col gap-3 p-4 text-sm"
        onSubmit={(event) => {
          event.preventDefault();
          clean.mutate(true);
        }}
      >
        <p className="text-soft">
          Expired sessions leave the lists; with an age, those that ended and were not used for so
          long do too. Their records and journals stay.
        </p>
        <Field label="Unused for (may be empty)">
          <TextInput
            value={age}
            placeholder="e.g. 7d"
            onChange={(event) => setAge(event.target.value)}
          />
        </Field>
        {clean.isError && (
          <p role="alert" className="text-bad">
            {messageOf(clean.error)}
          </p>
        )}
        {isPlanned && (
          <div role="status">
            <p>{countText(plan.ids.length)} would be cleaned up</p>
            <ul className="font-mono text-xs text-soft">
              {plan.ids.slice(0, SHOWN).map((id) => (
                <li key={id}>{id}</li>
              ))}
              {plan.ids.length > SHOWN && <li>and {plan.ids.length - SHOWN} more</li>}
            </ul>
          </div>
        )}
        <span className="flex gap-2">
          <Button type="submit" {...busy}>
            Look first
          </Button>
          {isPlanned && plan.ids.length > 0 && (
            <Button look="danger" {...busy} onClick={() => clean.mutate(false)}>
              Clean up {countText(plan.ids.length)}
            </Button>
          )}
        </span>
      </form>
    </Dialog>
  );
}

function countText(count: number): string {
  return count === 1 ? "1 session" : `${count} sessions`;
}
