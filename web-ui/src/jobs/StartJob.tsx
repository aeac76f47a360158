import { useState } from "react";

import { messageOf } from "../api/problem";
import { useActing } from "../shell/acting";
import { useAddressPart } from "../shell/address";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Field, Select, TextArea, TextInput } from "../ui/fields";
import { HeldSession } from "./HeldSession";
import { SessionFields } from "./SessionFields";
import { StartOptions } from "./StartOptions";
import { bodyOf, EMPTY_FORM, inputNames, missingOf, type StartForm } from "./start_body";
import { holderOf, useAgents, useDefaults, useStart } from "./use_start";

/** Starts a job: for whom, with which prompt, in which session, within which limits. */
export default function StartJob({
  onClose,
  agent,
  session,
}: {
  onClose: () => void;
  agent?: string;
  /** A session to continue. */
  session?: string;
}) {
  const here = useAddressPart("agent");
  const [form, setForm] = useState<StartForm>({
    ...EMPTY_FORM,
    agent: agent ?? here,
    ...(session !== undefined && { session, choice: "resume" as const }),
  });
  const agents = useAgents();
  const defaults = useDefaults(form.agent).data;
  const start = useStart(onClose);
  const acting = useActing();
  const set = (change: Partial<StartForm>) => setForm((before) => ({ ...before, ...change }));

  const names = inputNames(form.prompt.trim() === "" ? (defaults?.prompt ?? "") : form.prompt);
  const missing = missingOf(form, (defaults?.prompt ?? "") !== "");
  const holder = start.isError ? holderOf(start.error) : null;
  const send = (isBranch = false, waits = false) => {
    if (acting.disabled || start.isPending || missing !== null) return;
    start.mutate({ body: bodyOf(form, names, isBranch), waits });
  };
  return (
    <Dialog title="Start a job" onClose={onClose} className="w-[min(44rem,calc(100vw-1.5rem))]">
      <form
        className="flex flex-col gap-3 p-4"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
        }}
      >
        <Field label="Agent">
          <Select
            autoFocus={form.agent === ""}
            required
            className="min-h-10"
            value={form.agent}
            onChange={(event) =>
              setForm({ ...EMPTY_FORM, prompt: form.prompt, agent: event.target.value })
            }
            options={[
              ["", "choose an agent"],
              ...(agents.data ?? []).map(({ name }) => [name, name] as const),
            ]}
          />
        </Field>
        <Field label={defaults?.prompt ? "Prompt (empty: the agent's own)" : "Prompt"}>
          <TextArea
            autoFocus={form.agent !== ""}
            rows={4}
            value={form.prompt}
            maxLength={1_000_000}
            placeholder={defaults?.prompt ?? ""}
            className="field-sizing-content max-h-72 min-h-24 text-base sm:text-sm"
            onChange={(event) => set({ prompt: event.target.value })}
          />
        </Field>
        {names.length > 0 && (
          <fieldset className="grid gap-2 sm:grid-cols-2">
            <legend className="pb-1 text-xs text-faint">Values in the prompt</legend>
            {names.map((name) => (
              <Field key={name} label={name}>
                <TextInput
                  value={form.inputs[name] ?? ""}
                  autoComplete="off"
                  className="min-h-10"
                  onChange={(event) =>
                    set({ inputs: { ...form.inputs, [name]: event.target.value } })
                  }
                />
              </Field>
            ))}
          </fieldset>
        )}
        <SessionFields form={form} onChange={set} mode={defaults?.sessionMode ?? ""} />
        <StartOptions form={form} onChange={set} defaults={defaults} />
        {holder !== null && (
          <HeldSession
            message={messageOf(start.error)}
            holder={holder}
            isBusy={start.isPending}
            onBranch={() => send(true)}
            onWait={() => send(false, true)}
            onClose={onClose}
          />
        )}
        {start.isError && holder === null && (
          <p role="alert" className="text-sm [overflow-wrap:anywhere] text-bad">
            {messageOf(start.error)}
          </p>
        )}
        <div className="flex items-center justify-end gap-2">
          {acting.title !== undefined && <p className="text-sm text-wait">{acting.title}.</p>}
          <Button
            look="primary"
            type="submit"
            className="min-h-10"
            disabled={acting.disabled || start.isPending || missing !== null}
            title={acting.title ?? missing ?? undefined}
            hint="⌘↵"
          >
            Start
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
