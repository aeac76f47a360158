import { useId, useLayoutEffect, useRef, type ReactNode } from "react";

import { classes } from "./classes";

const FIELDS = "input:enabled, select:enabled, textarea:enabled";

/** A modal window. Escape and a click beside it close it; the focus returns to where it was. */
export function Dialog({
  title,
  onClose,
  children,
  className,
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // A layout effect ends while the window is still in the page: only then closing it returns the focus.
  useLayoutEffect(() => {
    const shown = dialog.current;
    if (shown !== null && !shown.open) {
      shown.showModal();
      // By itself it focuses the button that closes it; a window with fields is opened to fill them.
      shown.querySelector<HTMLElement>(FIELDS)?.focus();
    }
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === dialog.current && onClose()}
      className={classes(
        "backdrop:bg-black/50 m-auto max-h-[90dvh] w-[min(36rem,calc(100vw-1.5rem))] overflow-auto rounded-lg border border-line bg-panel p-0 text-ink shadow-2xl",
        className,
      )}
    >
      <div className="flex items-center gap-2 border-b border-line px-4 py-2">
        <h2 id={heading} className="font-semibold">
          {title}
        </h2>
        <button
          type="button"
          aria-label="Close"
          className="ml-auto grid size-10 place-items-center rounded text-lg text-soft hover:bg-hover md:size-8"
          onClick={onClose}
        >
          ×
        </button>
      </div>
      {children}
    </dialog>
  );
}
