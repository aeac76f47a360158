/** Who uses the page, and what they may do. */

import { createContext, use } from "react";

import type { Me, Role } from "../api/types";

export const MeContext = createContext<Me | null>(null);
const RANKS: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

/** Who is logged in. */
export function useMe(): Me {
  const me = use(MeContext);
  if (me === null) throw new Error("MeContext is missing");
  return me;
}

/** Whether the person has at least this role. The server checks it too. */
export function useMay(role: Role): boolean {
  const me = use(MeContext);
  return me !== null && RANKS[me.role] >= RANKS[role];
}
