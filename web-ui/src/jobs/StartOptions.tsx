import { LimitFields } from "../job/LimitFields";
import { Field, TextInput } from "../ui/fields";
import type { StartForm } from "./start_body";
import type { AgentDefaults } from "./use_start";

/** Limits, model and order of a job, where they are to be other than the agent's. */
export function StartOptions({
  form,
  onChange,
  defaults,
}: {
  form: StartForm;
  onChange: (change: Partial<StartForm>) => void;
  defaults: AgentDefaults | undefined;
}) {
  const input = (name: keyof StartForm, label: string, placeholder: string, pattern?: string) => (
    <Field label={label}>
      <TextInput
        className="min-h-10"
        value={form[name] as string}
        placeholder={placeholder}
        autoComplete="off"
        {...(pattern !== undefined && { pattern })}
        onChange={(event) => onChange({ [name]: event.target.value })}
      />
    </Field>
  );
  return (
    <details className="rounded-md border border-line p-3">
      <summary className="text-sm">Limits and other settings</summary>
      <div className="flex flex-col gap-3 pt-3">
        <LimitFields
          values={form.limits}
          onChange={(limits) => onChange({ limits })}
          usual={defaults?.limits ?? {}}
        />
        <div className="grid grid-cols-2 gap-2 sm:grid-cols-4">
          {input("model", "model", defaults?.model || "the agent's")}
          {input("maxTurns", "turns at most", defaults?.maxTurns || "no limit", "[1-9][0-9]*")}
          {input("timeout", "ends after", "e.g. 30m")}
          {input("priority", "priority", "0", "-?[0-9]+")}
        </div>
      </div>
    </details>
  );
}
