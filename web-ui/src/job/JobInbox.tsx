import type { ItemRow } from "../api/types";
import { ItemPanel } from "../inbox/ItemPanel";
import { useItem, useItemsAbout } from "../inbox/use_inbox";
import type { JobDocument } from "./documents";

/** What the job asks a person; nothing while it does not wait. */
export function useAsked(job: JobDocument | undefined): readonly ItemRow[] {
  const mayAsk = job?.status === "suspended" || job?.status === "failed";
  const items = useItemsAbout(job?.id ?? null, mayAsk).data;
  return mayAsk && items !== undefined ? items : NOTHING;
}

const NOTHING: readonly ItemRow[] = [];

/** The questions of the job and their answers. */
export function Asked({ items }: { items: readonly ItemRow[] }) {
  return (
    <ul className="flex flex-col gap-6 p-4">
      {items.map(({ id }, place) => (
        <li key={id}>
          <Item id={id} hasKeys={place === 0} />
        </li>
      ))}
    </ul>
  );
}

/** The same as a part of the page that can be closed. */
export function JobInbox({ items }: { items: readonly ItemRow[] }) {
  if (items.length === 0) return null;
  return (
    <section
      aria-label="Waits for you"
      className="max-h-[50%] shrink-0 overflow-y-auto border-t border-wait"
    >
      <details open>
        <summary className="sticky top-0 z-10 flex min-h-9 items-center bg-wait-soft px-4 text-sm font-medium text-wait focus-visible:-outline-offset-2">
          ▾ Waits for you: {items.length === 1 ? "1 item" : `${items.length} items`}
        </summary>
        <Asked items={items} />
      </details>
    </section>
  );
}

function Item({ id, hasKeys }: { id: string; hasKeys: boolean }) {
  const item = useItem(id).data;
  return item === undefined ? null : <ItemPanel item={item} hasKeys={hasKeys} isInJob />;
}
