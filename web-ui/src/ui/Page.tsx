/** What pages are made of: a frame, sections, and how they say that nothing is there, or not yet. */

import { useId, type ReactNode } from "react";

import { messageOf } from "../api/problem";
import { Button } from "./Button";

/** A page with a heading; `aside` stands beside it. */
export function Page({
  title,
  aside,
  children,
}: {
  title: string;
  aside?: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className="mx-auto flex w-full max-w-6xl flex-col gap-4 px-4 py-4">
      <title>{`${title} · nightherd`}</title>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <h1 className="text-xl font-semibold">{title}</h1>
        {aside !== undefined && <div className="ml-auto flex flex-wrap gap-2">{aside}</div>}
      </div>
      {children}
    </div>
  );
}

/** A part of a page. */
export function Section({
  title,
  aside,
  children,
}: {
  title: string;
  aside?: ReactNode;
  children: ReactNode;
}) {
  const heading = useId();
  return (
    <section aria-labelledby={heading} className="mb-4 min-w-0 first:mt-0">
      <div className="mb-1.5 flex items-baseline gap-2">
        <h2 id={heading} className="text-xs font-semibold tracking-wide text-faint uppercase">
          {title}
        </h2>
        {aside !== undefined && <div className="text-xs text-faint">{aside}</div>}
      </div>
      {children}
    </section>
  );
}

/** A framed area. */
export function Card({ children, label }: { children: ReactNode; label?: string }) {
  return (
    <div
      {...(label !== undefined && { role: "group", "aria-label": label })}
      className="rounded-lg border border-line bg-panel"
    >
      {children}
    </div>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <p className="py-6 text-center text-sm text-faint">{children}</p>;
}

export function Loading() {
  return (
    <p role="status" className="py-6 text-center text-sm text-faint">
      loading …
    </p>
  );
}

export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <div
      role="alert"
      className="flex flex-col items-center gap-2 py-6 text-center text-sm text-bad"
    >
      <p className="[overflow-wrap:anywhere]">{messageOf(error)}</p>
      {retry !== undefined && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}
