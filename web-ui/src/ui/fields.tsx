/** Fields of forms and filters. */

import type { ComponentProps, ReactNode } from "react";

import { classes } from "./classes";

const FIELD = "min-h-10 md:min-h-9 rounded-md border border-edge bg-panel px-2 text-sm text-ink";

/** A label above its field. */
export function Field({ label, children }: { label: string; children: ReactNode }) {
  return (
    <label className="flex min-w-0 flex-col gap-0.5 text-xs text-faint">
      {label}
      {children}
    </label>
  );
}

export function TextInput({ className, ...rest }: ComponentProps<"input">) {
  return <input className={classes(FIELD, className)} {...rest} />;
}

export function Select({
  options,
  className,
  ...rest
}: ComponentProps<"select"> & { options: readonly (readonly [value: string, text: string])[] }) {
  return (
    <select className={classes(FIELD, className)} {...rest}>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

export function TextArea({ className, ...rest }: ComponentProps<"textarea">) {
  return (
    <textarea
      className={classes(FIELD, "block w-full resize-y py-1.5 [overflow-wrap:anywhere]", className)}
      {...rest}
    />
  );
}
