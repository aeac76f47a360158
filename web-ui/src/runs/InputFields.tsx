import { useId } from "react";

import { classes } from "../ui/classes";
import { Select, TextArea, TextInput } from "../ui/fields";
import { typedOf, type InputSpec, type Specs, type Typed } from "./run_inputs";

/** A field for each declared input, with what is wrong beside it. */
export function InputFields({
  specs,
  typed,
  onChange,
  problems,
}: {
  specs: Specs;
  typed: Typed;
  onChange: (typed: Typed) => void;
  problems: Readonly<Record<string, string>>;
}) {
  return (
    <div className="flex flex-col gap-3">
      {Object.entries(specs).map(([name, spec]) => (
        <InputField
          key={name}
          name={name}
          spec={spec}
          text={typed[name] ?? ""}
          problem={problems[name]}
          onChange={(text) => onChange({ ...typed, [name]: text })}
        />
      ))}
    </div>
  );
}

function InputField({
  name,
  spec,
  text,
  problem,
  onChange,
}: {
  name: string;
  spec: InputSpec;
  text: string;
  problem: string | undefined;
  onChange: (text: string) => void;
}) {
  const id = useId();
  const common = {
    id,
    name,
    value: text,
    "aria-describedby": `${id}-about`,
    "aria-invalid": problem !== undefined,
    "aria-required": spec.required,
    className: classes("w-full", problem !== undefined && "border-bad"),
    placeholder: spec.default === null ? "" : typedOf(spec.default),
  };
  return (
    <div className="flex flex-col gap-0.5">
      <label htmlFor={id} className="text-sm font-medium">
        {name}
        {spec.required && (
          <span className="text-bad" aria-hidden>
            {" *"}
          </span>
        )}{" "}
        <span className="text-xs font-normal text-faint">{aboutText(spec)}</span>
      </label>
      {spec.type === "boolean" ? (
        <Select
          {...common}
          options={[
            ["", spec.default === null ? "not set" : `default: ${typedOf(spec.default)}`],
            ["true", "true"],
            ["false", "false"],
          ]}
          onChange={(event) => onChange(event.target.value)}
        />
      ) : spec.type === "number" ? (
        <TextInput
          {...common}
          inputMode="decimal"
          autoComplete="off"
          onChange={(event) => onChange(event.target.value)}
        />
      ) : (
        <TextArea
          {...common}
          rows={spec.type === "text" ? 2 : 4}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
      <p id={`${id}-about`} className={classes("text-xs", problem ? "text-bad" : "text-faint")}>
        {problem ?? spec.description}
      </p>
    </div>
  );
}

function aboutText({ type, required }: InputSpec): string {
  const form = type === "list" ? "list: JSON, or a text on each line" : type;
  const kind = type === "object" ? "object: JSON" : form;
  return required ? `${kind}, required` : kind;
}
