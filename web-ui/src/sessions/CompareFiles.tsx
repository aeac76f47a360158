import { useMemo } from "react";

import { PatchView } from "../transcript/DiffView";
import { Empty } from "../ui/Page";
import type { Comparison } from "./documents";
import { patchFiles } from "./patch_files";

/** Files beyond this are listed, and not drawn. */
const MOST = 200;
/** Patches that are open at first. */
const OPEN = 3;

/** Which files of two sessions differ, and how. */
export function CompareFiles({ comparison }: { comparison: Comparison }) {
  const { files, files_left_out: leftOut, is_patch_left_out: isLarge, patch } = comparison;
  const parts = useMemo(
    () => new Map(patchFiles(patch ?? "").map((one) => [one.path, one])),
    [patch],
  );
  if (files === null) {
    return (
      <p className="text-sm text-soft">
        Files can be compared only where both sessions have a workspace of their own.
      </p>
    );
  }
  if (files.length === 0) return <Empty>All files are the same.</Empty>;
  return (
    <div className="flex flex-col gap-2 text-sm">
      <p className="text-soft">
        {files.length + leftOut === 1 ? "1 file differs" : `${files.length + leftOut} files differ`}
        , from the left to the right
        {isLarge && "; the differences are too large to be shown here"}
      </p>
      {files.slice(0, MOST).map((file, at) => {
        const part = parts.get(file.path);
        return (
          <details
            key={file.path}
            open={at < OPEN}
            className="rounded-lg border border-line bg-panel"
          >
            <summary className="flex min-h-11 flex-wrap items-center gap-x-3 px-3 py-1 md:min-h-8">
              <span className="min-w-0 font-mono text-xs [overflow-wrap:anywhere]">
                {file.old_path !== null && `${file.old_path} → `}
                {file.path}
              </span>
              <span className="text-xs text-faint">{file.status}</span>
              <span className="ml-auto text-xs tabular-nums">
                {file.added !== null && <span className="text-good">+{file.added} </span>}
                {file.removed !== null && <span className="text-bad">−{file.removed}</span>}
                {file.added === null && <span className="text-faint">binary</span>}
              </span>
            </summary>
            {part !== undefined && (
              <div className="border-t border-line p-2">
                <PatchView patch={part.patch} />
              </div>
            )}
          </details>
        );
      })}
      {files.length + leftOut > MOST && (
        <p className="text-faint">{files.length + leftOut - MOST} more files differ.</p>
      )}
    </div>
  );
}
