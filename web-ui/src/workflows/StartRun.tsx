import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { post } from "../api/client";
import { useIntents } from "../api/intent";
import { messageOf } from "../api/problem";
import type { RunRow } from "../api/types";
import { InputFields } from "../runs/InputFields";
import { problemsByInput, readInputs, type Typed } from "../runs/run_inputs";
import { useActing } from "../shell/acting";
import { notify } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { workflowPath, type Workflow } from "./use_workflow";

/** Start a run of a workflow, with a field for each of its inputs. */
export function StartRun({ workflow, onClose }: { workflow: Workflow; onClose: () => void }) {
  const specs = workflow.definition.inputs;
  const [typed, setTyped] = useState<Typed>({});
  const [problems, setProblems] = useState<Record<string, string>>({});
  const client = useQueryClient();
  const navigate = useNavigate();
  const intents = useIntents();
  const acting = useActing();
  const start = useMutation({
    mutationFn: async (inputs: Record<string, unknown>) => {
      const intent = [workflow.name, inputs];
      const path = `${workflowPath(workflow.name)}/runs`;
      const made = await post<RunRow>(path, { inputs }, { key: intents.keyOf(intent) });
      intents.done(intent);
      return made;
    },
    onSuccess: (made) => {
      void client.invalidateQueries({ queryKey: ["runs"] });
      notify(`The run ${made.id} is started.`);
      void navigate({ to: `/runs/${made.id}` });
    },
    onError: ({ message }) => setProblems(problemsByInput(message, Object.keys(specs))),
  });
  return (
    <Dialog title={`Start ${workflow.name}`} onClose={onClose}>
      <form
        noValidate
        className="flex flex-col gap-3 p-4"
        onSubmit={(event) => {
          event.preventDefault();
          const read = readInputs(specs, typed);
          setProblems(read.problems);
          const [wrong] = Object.keys(read.problems);
          if (wrong === undefined) start.mutate(read.values);
          else focusInput(event.currentTarget, wrong);
        }}
      >
        {Object.keys(specs).length === 0 && (
          <p className="text-sm text-soft">This workflow takes no inputs.</p>
        )}
        <InputFields specs={specs} typed={typed} onChange={setTyped} problems={problems} />
        {start.isError && Object.keys(problems).length === 0 && (
          <p role="alert" className="text-sm [overflow-wrap:anywhere] text-bad">
            {messageOf(start.error)}
          </p>
        )}
        <Button
          look="primary"
          type="submit"
          className="min-h-10"
          title={acting.title}
          disabled={acting.disabled || start.isPending}
        >
          Start
        </Button>
        {acting.title !== undefined && <p className="text-sm text-wait">{acting.title}.</p>}
      </form>
    </Dialog>
  );
}

function focusInput(form: HTMLFormElement, name: string): void {
  const field = form.elements.namedItem(name);
  if (field instanceof HTMLElement) field.focus();
}
