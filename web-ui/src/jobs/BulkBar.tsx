import { useState } from "react";

import { useActing } from "../shell/acting";
import { Button } from "../ui/Button";
import { BulkDialog, type BulkVerb } from "./BulkDialog";
import { isAllChosen, NOTHING, targetOf, type BulkTarget, type Selection } from "./selection";

/** What can be done with the chosen jobs; there is nothing to see while none is chosen. */
export function BulkBar({
  selection,
  onSelect,
  shown,
  hasMore,
  q,
}: {
  selection: Selection;
  onSelect: (selection: Selection) => void;
  shown: readonly string[];
  /** Whether the filter finds more than is shown. */
  hasMore: boolean;
  q: string;
}) {
  // What was chosen when the window opened: it outlives the choice, to say what became of it.
  const [action, setAction] = useState<{ verb: BulkVerb; target: BulkTarget } | null>(null);
  const begin = (verb: BulkVerb) => setAction({ verb, target: targetOf(selection, q) });
  const acting = useActing();
  const count = selection.ids.size;
  const canTakeAll = hasMore && isAllChosen(selection, shown);
  return (
    <>
      {count > 0 && (
        <div
          role="region"
          aria-label="Chosen jobs"
          className="sticky bottom-2 flex flex-wrap items-center gap-2 rounded-lg border border-edge bg-panel px-3 py-2 text-sm shadow-lg"
        >
          <span role="status" className="font-medium">
            {selection.isEverything ? "All jobs of this filter" : `${count} chosen`}
          </span>
          {canTakeAll && (
            <Button
              look="ghost"
              className="min-h-10 md:min-h-8"
              onClick={() => onSelect({ ...selection, isEverything: !selection.isEverything })}
            >
              {selection.isEverything
                ? `Only the ${count} shown`
                : "Choose all that the filter finds"}
            </Button>
          )}
          <span className="ml-auto flex flex-wrap gap-2">
            <Button className="min-h-10 md:min-h-8" {...acting} onClick={() => begin("retry")}>
              Retry …
            </Button>
            <Button
              look="danger"
              className="min-h-10 md:min-h-8"
              {...acting}
              onClick={() => begin("cancel")}
            >
              Cancel …
            </Button>
            <Button look="ghost" className="min-h-10 md:min-h-8" onClick={() => onSelect(NOTHING)}>
              Choose none
            </Button>
          </span>
        </div>
      )}
      {action !== null && (
        <BulkDialog {...action} onClose={() => setAction(null)} onDone={() => onSelect(NOTHING)} />
      )}
    </>
  );
}
