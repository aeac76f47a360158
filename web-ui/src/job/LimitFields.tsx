import type { Schemas } from "../api/types";
import { Field, TextInput } from "../ui/fields";
import { LIMIT_NAMES, usedText } from "./limits";

/** New maxima of a job, each empty until it is typed. */
export function LimitFields({
  values,
  onChange,
  limits = [],
  first = null,
  firstId,
  usual = {},
  disabled = false,
}: {
  values: Record<string, string>;
  onChange: (values: Record<string, string>) => void;
  /** The limits as they are. */
  limits?: readonly Schemas["LimitRow"][];
  /** The limit that was reached: it comes first. */
  first?: string | null;
  /** The id of the first field. */
  firstId?: string;
  /** What counts where nothing is given. */
  usual?: Record<string, string>;
  disabled?: boolean;
}) {
  const names = LIMIT_NAMES.toSorted(
    ([left], [right]) => Number(right === first) - Number(left === first),
  );
  return (
    <div className="grid grid-cols-2 gap-2 sm:grid-cols-3">
      {names.map(([name, example], place) => {
        const used = usedText(limits, name);
        return (
          <Field key={name} label={used === null ? name : `${name} (${used})`}>
            <TextInput
              name={name}
              {...(place === 0 && firstId !== undefined && { id: firstId })}
              value={values[name] ?? ""}
              disabled={disabled}
              className="min-h-10"
              placeholder={usual[name] ?? `${used === null ? "none; " : ""}e.g. ${example}`}
              autoComplete="off"
              inputMode={name === "duration" ? "text" : "decimal"}
              onChange={(event) => onChange({ ...values, [name]: event.target.value })}
            />
          </Field>
        );
      })}
    </div>
  );
}
