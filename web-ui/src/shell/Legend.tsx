import { Dialog } from "../ui/Dialog";
import { useRegisteredShortcuts, type Shortcut } from "./shortcuts";

/** The keys that work on the page now. */
export default function Legend({ onClose }: { onClose: () => void }) {
  const groups = Map.groupBy(useRegisteredShortcuts(), (shortcut) => shortcut.group);
  return (
    <Dialog title="Keys" onClose={onClose}>
      <div className="grid gap-x-8 gap-y-4 p-4 sm:grid-cols-2">
        {[...groups].map(([name, shortcuts]) => (
          <section key={name}>
            <h3 className="mb-1 text-xs font-semibold text-faint uppercase">{name}</h3>
            <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1 text-sm">
              {unique(shortcuts).map(({ keys, label }) => (
                <div key={keys} className="contents">
                  <dt>
                    <kbd className="rounded border border-line bg-raised px-1 font-mono text-xs">
                      {keys.replace("mod+", "Ctrl ")}
                    </kbd>
                  </dt>
                  <dd>{label}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}

function unique(shortcuts: readonly Shortcut[]): Shortcut[] {
  return [
    ...new Map(shortcuts.toReversed().map((shortcut) => [shortcut.keys, shortcut])).values(),
  ].toReversed();
}
