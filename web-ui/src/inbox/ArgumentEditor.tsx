import { useMemo, useState } from "react";

import type { ItemDocument } from "../api/types";
import { Field, TextArea } from "../ui/fields";
import { titleOf } from "./Artifact";
import type { Asked } from "./asked";
import { changedInput, fieldsOf, type InputField } from "./call_input";

export interface Changes {
  /** Whether a person may change what is approved. */
  canEdit: boolean;
  isEditing: boolean;
  setEditing: (on: boolean) => void;
  fields: readonly InputField[];
  setFields: (fields: readonly InputField[]) => void;
  problems: Record<string, string>;
  /** What is approved instead of what was asked; null when nothing was changed. */
  input: Record<string, unknown> | null;
  /** Why it cannot be sent. */
  problem: string | null;
}

/** The arguments of a call, or the text of a gate's artifact, as a person changes them. */
export function useChanges(item: ItemDocument, asked: Asked): Changes {
  const original = useMemo(() => originalOf(item, asked), [item, asked]);
  const [isEditing, setEditing] = useState(false);
  const [edited, setFields] = useState<readonly InputField[] | null>(null);
  const fields = edited ?? fieldsOf(original ?? {});
  const { input, problems } = changedInput(original ?? {}, fields);
  const first = Object.entries(problems)[0];
  return {
    canEdit: original !== null && item.quorum <= 1,
    isEditing,
    setEditing: (on) => {
      setEditing(on);
      setFields(null);
    },
    fields,
    setFields,
    problems,
    input: isEditing ? input : null,
    problem: isEditing && first !== undefined ? `${first[0]}: ${first[1]}` : null,
  };
}

function originalOf(item: ItemDocument, asked: Asked): Record<string, unknown> | null {
  if (asked.kind === "call" && item.kind === "approval") return asked.input;
  const text = item.artifact?.text ?? null;
  return text === null ? null : { artifact: text };
}

/** Changes the arguments of a call, or a gate's artifact, before it is approved. */
export function ArgumentEditor({ changes, item }: { changes: Changes; item: ItemDocument }) {
  const { fields, problems, setFields } = changes;
  const { artifact } = item;
  const labelOf = (field: InputField) => {
    if (artifact !== null && field.name === "artifact") return titleOf(artifact);
    return field.kind === "json" ? `${field.name} (JSON)` : field.name;
  };
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="pb-1 text-sm text-soft">
        {artifact === null
          ? "The call runs with these arguments instead; the agent is told."
          : "The run continues with this text."}
      </legend>
      {fields.map((field, place) => (
        <div key={field.name}>
          <Field label={labelOf(field)}>
            <TextArea
              // The person asked to change it.
              autoFocus={place === 0}
              value={field.text}
              rows={Math.min(16, field.text.split("\n").length + 1)}
              spellCheck={false}
              aria-invalid={problems[field.name] !== undefined}
              className="font-mono"
              onChange={(event) =>
                setFields(fields.with(place, { ...field, text: event.target.value }))
              }
            />
          </Field>
          {problems[field.name] !== undefined && (
            <p role="alert" className="pt-0.5 text-xs text-bad">
              {problems[field.name]}
            </p>
          )}
        </div>
      ))}
    </fieldset>
  );
}
