import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";

import { useAliveAt, useIsOnline } from "../live/live";
import { classes } from "../ui/classes";
import { Dialog } from "../ui/Dialog";
import { timeText } from "../ui/time";
import { Announcer } from "./Announcer";
import { InboxCount } from "./InboxCount";
import { NAVIGATION, type PageEntry } from "./pages";
import { useMay, useMe } from "./session";
import { useKeyboard, useShortcuts, type Shortcut } from "./shortcuts";
import { UserMenu } from "./UserMenu";

const Palette = lazy(() => import("./Palette"));
const Legend = lazy(() => import("./Legend"));
const StartJob = lazy(() => import("../jobs/StartJob"));
const DropFile = lazy(() => import("../job/DropFile"));
type Open = "palette" | "legend" | "start" | "menu" | null;
/** The pages of the bar at the bottom of a phone. */
const ON_PHONES = ["/", "/inbox", "/jobs", "/search"];

/** The frame of every page: navigation, what is wrong, and windows that open everywhere. */
export function Layout() {
  const me = useMe();
  const navigate = useNavigate();
  const mayStart = useMay("operator");
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  const group = "Everywhere";
  useShortcuts([
    { keys: "?", label: "Keys of this page", group, run: () => setOpen("legend") },
    { keys: "mod+k", label: "Command palette", group, run: () => setOpen("palette") },
    ...(mayStart ? [{ keys: "c", label: "Start a job", group, run: () => setOpen("start") }] : []),
    ...NAVIGATION.map(({ path, name = "", keys = "" }): Shortcut => ({
      keys,
      label: name,
      group: "Go to",
      run: () => void navigate({ to: path }),
    })),
  ]);
  useKeyboard();
  return (
    <div className="flex h-dvh flex-col md:flex-row">
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-panel focus:p-2"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("content")?.focus();
        }}
      >
        Skip to content
      </a>
      <nav
        aria-label="Pages"
        className="hidden w-44 shrink-0 flex-col gap-0.5 overflow-y-auto border-r border-line bg-panel p-2 md:flex"
      >
        <Link to="/" className="px-2 py-1.5 font-semibold">
          {me.fleet || "nightherd"}
        </Link>
        {NAVIGATION.map((page) => (
          <NavLink key={page.path} page={page} />
        ))}
        <div className="mt-auto flex flex-col gap-1 pt-4">
          {mayStart && (
            <button type="button" className={NAV} onClick={() => setOpen("start")}>
              Start a job <kbd className="ml-auto font-mono text-xs text-faint">c</kbd>
            </button>
          )}
          <button type="button" className={NAV} onClick={() => setOpen("palette")}>
            Commands <kbd className="ml-auto font-mono text-xs text-faint">⌘k</kbd>
          </button>
          <button type="button" className={NAV} onClick={() => setOpen("legend")}>
            Keys <kbd className="ml-auto font-mono text-xs text-faint">?</kbd>
          </button>
          <UserMenu />
        </div>
      </nav>
      <div className="flex min-h-0 min-w-0 flex-1 flex-col">
        <Offline />
        <main id="content" tabIndex={-1} className="min-h-0 flex-1 overflow-y-auto outline-none">
          <Outlet />
        </main>
      </div>
      <nav
        aria-label="Main pages"
        className="flex shrink-0 border-t border-line bg-panel pb-[env(safe-area-inset-bottom)] md:hidden"
      >
        {NAVIGATION.filter(({ path }) => ON_PHONES.includes(path)).map((page) => (
          <NavLink key={page.path} page={page} isBar />
        ))}
        <button type="button" className={BAR} onClick={() => setOpen("menu")}>
          More
        </button>
      </nav>
      <Announcer />
      <Suspense>
        {open === "palette" && <Palette onClose={close} onStart={() => setOpen("start")} />}
        {open === "legend" && <Legend onClose={close} />}
        {open === "start" && <StartJob onClose={close} />}
        {open === "menu" && <PhoneMenu onClose={close} onStart={() => setOpen("start")} />}
        <DropFile />
      </Suspense>
    </div>
  );
}

const NAV =
  "flex min-h-8 w-full items-center gap-2 rounded-md px-2 text-left text-sm text-soft hover:bg-hover";
const BAR = "flex min-h-12 flex-1 items-center justify-center gap-1 text-sm text-soft";

function NavLink({ page, isBar = false }: { page: PageEntry; isBar?: boolean }) {
  const { pathname } = useLocation();
  const isHere = page.path === "/" ? pathname === "/" : pathname.startsWith(page.path);
  return (
    <Link
      to={page.path}
      aria-current={isHere ? "page" : undefined}
      className={classes(isBar ? BAR : NAV, isHere && "bg-accent-soft font-medium text-accent")}
    >
      {page.name}
      {page.path === "/inbox" && <InboxCount />}
    </Link>
  );
}

/** Says that what is shown is as it was, because the daemon does not answer. */
function Offline() {
  const isOnline = useIsOnline();
  const aliveAt = useAliveAt();
  if (isOnline) return null;
  return (
    <p role="alert" className="border-b border-wait bg-wait-soft px-4 py-1.5 text-sm text-wait">
      The daemon does not answer. This is as of{" "}
      {aliveAt === 0 ? "before this page was opened" : timeText(new Date(aliveAt).toISOString())};
      nothing can be changed until it is back. Reconnecting …
    </p>
  );
}

function PhoneMenu({ onClose, onStart }: { onClose: () => void; onStart: () => void }) {
  const mayStart = useMay("operator");
  return (
    <Dialog title="More" onClose={onClose} className="mt-auto mb-0 w-dvw max-w-none">
      <nav aria-label="More pages" className="flex flex-col gap-1 p-3">
        {mayStart && (
          <button type="button" className={classes(NAV, "min-h-11")} onClick={onStart}>
            Start a job
          </button>
        )}
        {NAVIGATION.filter(({ path }) => !ON_PHONES.includes(path)).map((page) => (
          <div key={page.path} onClick={onClose} role="presentation" className="*:min-h-11">
            <NavLink page={page} />
          </div>
        ))}
        <UserMenu />
      </nav>
    </Dialog>
  );
}
