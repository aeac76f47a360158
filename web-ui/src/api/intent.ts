/** Idempotency keys: one for each thing that a person wants done, the same for every try of it. */

import { useState } from "react";

/** Remembers the key of what is wanted until it is done. */
export class Intents {
  private readonly keys = new Map<string, string>();

  /** Return the key of a request: the one of the try before, as long as nothing in it has changed. */
  keyOf(intent: unknown): string {
    const text = JSON.stringify(intent);
    const key = this.keys.get(text) ?? crypto.randomUUID();
    this.keys.set(text, key);
    return key;
  }

  /** Forget what was done: the same request is a new wish from now on. */
  done(intent: unknown): void {
    this.keys.delete(JSON.stringify(intent));
  }
}

export function useIntents(): Intents {
  const [intents] = useState(() => new Intents());
  return intents;
}
