import type { Role } from "../api/types";
import { useIsOnline } from "../live/live";
import { useMay } from "./session";

/** Whether a control can be used now, and why not: the properties `disabled` and `title` of a button. */
export function useActing(role: Role = "operator"): {
  disabled: boolean;
  title: string | undefined;
} {
  const isOnline = useIsOnline();
  const may = useMay(role);
  const reason = !isOnline
    ? "The daemon does not answer"
    : may
      ? undefined
      : `This needs the role ${role}`;
  return { disabled: reason !== undefined, title: reason };
}
