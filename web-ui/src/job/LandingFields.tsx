import { Field, TextInput } from "../ui/fields";
import type { LandingForm, Way } from "./landing_form";

/** What can be chosen when a job's changes are taken over. */
export function LandingFields({
  way,
  form,
  onChange,
}: {
  way: Way;
  form: LandingForm;
  onChange: (change: Partial<LandingForm>) => void;
}) {
  if (way === "apply") {
    return (
      <Check
        label="Leave out changes of earlier jobs in the same workspace"
        value={form.isOnlyThisJob}
        onChange={(isOnlyThisJob) => onChange({ isOnlyThisJob })}
      />
    );
  }
  return (
    <>
      <Field label="Message of the commit">
        <TextInput
          value={form.message}
          className="min-h-10"
          onChange={(event) => onChange({ message: event.target.value })}
        />
      </Field>
      {way === "merge" ? (
        <>
          <Field label="Into branch">
            <TextInput
              value={form.into}
              placeholder="the branch that the workspace began at"
              className="min-h-10"
              autoComplete="off"
              onChange={(event) => onChange({ into: event.target.value })}
            />
          </Field>
          <Check
            label="Make a merge commit in any case"
            value={form.isMergeCommit}
            onChange={(isMergeCommit) => onChange({ isMergeCommit })}
          />
        </>
      ) : (
        <>
          <Field label="Remote">
            <TextInput
              value={form.remote}
              placeholder="origin"
              className="min-h-10"
              autoComplete="off"
              onChange={(event) => onChange({ remote: event.target.value })}
            />
          </Field>
          <Check
            label="Replace the remote's branch if it is as it was last seen"
            value={form.isForced}
            onChange={(isForced) => onChange({ isForced })}
          />
        </>
      )}
    </>
  );
}

function Check({
  label,
  value,
  onChange,
}: {
  label: string;
  value: boolean;
  onChange: (value: boolean) => void;
}) {
  return (
    <label className="flex min-h-10 items-center gap-2 text-sm">
      <input type="checkbox" checked={value} onChange={(event) => onChange(event.target.checked)} />
      {label}
    </label>
  );
}
