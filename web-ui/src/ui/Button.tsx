import type { ComponentProps } from "react";

import { classes } from "./classes";

export type ButtonLook = "plain" | "primary" | "danger" | "ghost";

const LOOKS: Record<ButtonLook, string> = {
  plain: "border-line bg-panel text-ink hover:bg-hover",
  primary: "border-transparent bg-accent text-on-accent hover:opacity-90",
  danger: "border-line bg-panel text-bad hover:bg-bad-soft",
  ghost: "border-transparent text-soft hover:bg-hover",
};

/** A button; `hint` names the key that does the same. */
export function Button({
  look = "plain",
  hint,
  className,
  children,
  type = "button",
  ...rest
}: ComponentProps<"button"> & { look?: ButtonLook; hint?: string }) {
  return (
    <button
      type={type}
      className={classes(
        "inline-flex min-h-11 items-center justify-center gap-1.5 rounded-md border px-2.5 text-sm font-medium disabled:opacity-60 md:min-h-8",
        LOOKS[look],
        className,
      )}
      {...rest}
    >
      {children}
      {hint !== undefined && (
        <kbd aria-hidden className="hidden font-mono text-[0.7rem] opacity-80 md:inline">
          {hint}
        </kbd>
      )}
    </button>
  );
}
