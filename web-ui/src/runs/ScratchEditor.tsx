import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { post } from "../api/client";
import { useActing } from "../shell/acting";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Field, TextArea, TextInput } from "../ui/fields";
import { isRunOpen, runPath, type RunDocument } from "./documents";

/** Values that the phases of a run share: a person may look and set them. */
export function ScratchEditor({ run }: { run: RunDocument }) {
  const [edited, setEdited] = useState<{ name: string; text: string; isNew: boolean } | null>(null);
  const [problem, setProblem] = useState("");
  const client = useQueryClient();
  const acting = useActing();
  const save = useMutation({
    mutationFn: (values: Record<string, unknown>) =>
      post(`${runPath(run.id)}/scratch`, values, { method: "PATCH" }),
    onSuccess: () => {
      setEdited(null);
      notify("The scratch is changed.");
      void client.invalidateQueries({ queryKey: ["run"] });
    },
    onError: notifyError,
  });
  const canEdit = isRunOpen(run);
  const busy = { ...acting, disabled: acting.disabled || save.isPending };
  const entries = Object.entries(run.scratch);
  return (
    <div className="flex flex-col gap-2">
      {entries.length === 0 && <p className="text-faint">empty</p>}
      <ul className="flex flex-col gap-1">
        {entries.map(([name, value]) => (
          <li key={name} className="flex items-start gap-2">
            <span className="text-faint">{name}</span>
            <code className="min-w-0 flex-1 font-mono text-xs leading-5 [overflow-wrap:anywhere] whitespace-pre-wrap">
              {JSON.stringify(value)}
            </code>
            {canEdit && (
              <Button
                look="ghost"
                aria-label={`Edit ${name}`}
                {...busy}
                onClick={() =>
                  setEdited({ name, text: JSON.stringify(value, null, 2), isNew: false })
                }
              >
                Edit
              </Button>
            )}
          </li>
        ))}
      </ul>
      {edited === null ? (
        canEdit && (
          <Button
            className="self-start"
            {...busy}
            onClick={() => setEdited({ name: "", text: "", isNew: true })}
          >
            Add a value
          </Button>
        )
      ) : (
        <form
          className="flex flex-col gap-2"
          onSubmit={(event) => {
            event.preventDefault();
            try {
              const value: unknown = JSON.parse(edited.text);
              setProblem("");
              save.mutate({ [edited.name]: value });
            } catch {
              setProblem('The value is not JSON: a text is written as "text".');
            }
          }}
        >
          <Field label="Name">
            <TextInput
              required
              value={edited.name}
              readOnly={!edited.isNew}
              onChange={(event) => setEdited({ ...edited, name: event.target.value })}
            />
          </Field>
          <Field label="Value, as JSON; null removes it">
            <TextArea
              rows={3}
              required
              value={edited.text}
              className="font-mono"
              aria-invalid={problem !== ""}
              onChange={(event) => setEdited({ ...edited, text: event.target.value })}
            />
          </Field>
          {problem !== "" && (
            <p role="alert" className="text-bad">
              {problem}
            </p>
          )}
          <span className="flex gap-2">
            <Button look="primary" type="submit" {...busy}>
              Set
            </Button>
            <Button onClick={() => setEdited(null)}>Leave it</Button>
          </span>
        </form>
      )}
    </div>
  );
}
