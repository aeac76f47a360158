import { useId, useState } from "react";

import { messageOf } from "../api/problem";
import { Button } from "./Button";
import { classes } from "./classes";
import { TextInput } from "./fields";
import { hasTerm, toggleTerm } from "./filter_text";

/** A common term of a filter, to switch on and off. */
export interface Chip {
  name: string;
  key: string;
  value: string;
  /** Whether the key takes one value, such as `since`. */
  isOnly?: boolean;
}

/** A filter in one field, with common terms as buttons. The server says what is wrong with it. */
export function FilterField({
  value,
  onChange,
  chips,
  placeholder,
  keys,
  error = null,
}: {
  value: string;
  onChange: (filter: string) => void;
  chips: readonly Chip[];
  placeholder: string;
  /** The keys that the filter knows, for the hint. */
  keys: readonly string[];
  error?: unknown;
}) {
  const field = useId();
  const hint = useId();
  // What is typed counts once it is sent; a filter from elsewhere replaces it.
  const [draft, setDraft] = useState({ of: value, text: value });
  if (draft.of !== value) setDraft({ of: value, text: value });
  return (
    <div className="flex flex-col gap-2">
      <form
        role="search"
        className="flex flex-wrap gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          onChange(draft.text.trim());
        }}
      >
        <label htmlFor={field} className="sr-only">
          Filter
        </label>
        <TextInput
          id={field}
          type="search"
          value={draft.text}
          placeholder={placeholder}
          aria-describedby={hint}
          aria-invalid={error !== null}
          autoComplete="off"
          spellCheck={false}
          className="min-h-10 min-w-0 flex-1 font-mono text-base md:min-h-9 md:text-sm"
          onChange={(event) => setDraft({ of: value, text: event.target.value })}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
        <Button type="submit" className="min-h-10 md:min-h-9">
          Filter
        </Button>
      </form>
      <p id={hint} className={classes("text-xs", error === null ? "text-faint" : "text-bad")}>
        {error === null ? `Words, and ${keys.map((key) => `${key}:`).join(" ")}` : messageOf(error)}
      </p>
      <div role="group" aria-label="Common filters" className="flex flex-wrap gap-1.5">
        {chips.map((chip) => {
          const isOn = hasTerm(value, chip.key, chip.value);
          return (
            <button
              key={`${chip.key}:${chip.value}`}
              type="button"
              aria-pressed={isOn}
              onClick={() => onChange(toggleTerm(value, chip.key, chip.value, chip.isOnly))}
              className={classes(
                "min-h-10 rounded-full border px-3 text-xs md:min-h-7",
                isOn
                  ? "border-accent bg-accent-soft font-medium text-accent"
                  : "border-line bg-panel text-soft hover:bg-hover",
              )}
            >
              {isOn && <span aria-hidden>✓ </span>}
              {chip.name}
            </button>
          );
        })}
      </div>
    </div>
  );
}
