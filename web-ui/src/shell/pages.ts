/** The pages of the dashboard: their addresses, names and keys. Each is loaded when it is first shown. */

import type { ComponentType } from "react";

export interface PageEntry {
  path: string;
  /** Its name in the navigation; pages without one are reached from others. */
  name?: string;
  /** The keys that go there. */
  keys?: string;
  load: () => Promise<{ default: ComponentType }>;
}

export const PAGES: readonly PageEntry[] = [
  { path: "/", name: "Home", keys: "g h", load: () => import("../home/HomePage") },
  { path: "/inbox", name: "Inbox", keys: "g i", load: () => import("../inbox/InboxPage") },
  { path: "/inbox/$item", load: () => import("../inbox/InboxPage") },
  { path: "/jobs", name: "Jobs", keys: "g j", load: () => import("../jobs/JobsPage") },
  { path: "/jobs/$job", load: () => import("../job/JobPage") },
  { path: "/runs", name: "Runs", keys: "g r", load: () => import("../runs/RunsPage") },
  { path: "/runs/$run", load: () => import("../runs/RunPage") },
  {
    path: "/sessions",
    name: "Sessions",
    keys: "g s",
    load: () => import("../sessions/SessionsPage"),
  },
  { path: "/sessions/$session", load: () => import("../sessions/SessionPage") },
  { path: "/compare/$left/$right", load: () => import("../sessions/ComparePage") },
  {
    path: "/workflows",
    name: "Workflows",
    keys: "g w",
    load: () => import("../workflows/WorkflowsPage"),
  },
  { path: "/workflows/$workflow", load: () => import("../workflows/WorkflowPage") },
  {
    path: "/schedules",
    name: "Schedules",
    keys: "g t",
    load: () => import("../schedules/SchedulesPage"),
  },
  { path: "/agents", name: "Agents", keys: "g a", load: () => import("../agents/AgentsPage") },
  { path: "/agents/$agent", load: () => import("../agents/AgentPage") },
  { path: "/costs", name: "Costs", keys: "g c", load: () => import("../costs/CostsPage") },
  { path: "/search", name: "Search", keys: "/", load: () => import("../search/SearchPage") },
  { path: "/health", name: "Health", keys: "g d", load: () => import("../health/HealthPage") },
  {
    path: "/settings",
    name: "Settings",
    keys: "g e",
    load: () => import("../settings/SettingsPage"),
  },
];

export const NAVIGATION = PAGES.filter((page) => page.name !== undefined);
