import { useState } from "react";

/** Two sessions that are to be compared; a third takes the place of the first. */
export function usePicked() {
  const [picked, setPicked] = useState<readonly string[]>([]);
  return {
    picked,
    toggle: (id: string) =>
      setPicked((before) =>
        before.includes(id) ? before.filter((one) => one !== id) : [...before, id].slice(-2),
      ),
    clear: () => setPicked([]),
  };
}

export type Picked = ReturnType<typeof usePicked>;
