import type { ItemDocument } from "../api/types";
import { PatchView } from "../transcript/DiffView";
import { LongText } from "../transcript/LongText";
import { Markdown } from "../transcript/Markdown";

import { visibleText } from "./visible_text";

type ArtifactRow = NonNullable<ItemDocument["artifact"]>;

/** What a gate shows beside its summary. */
export function Artifact({ artifact, id }: { artifact: ArtifactRow; id: string }) {
  return (
    <figure className="rounded-md border border-line">
      <figcaption className="border-b border-line px-3 py-1 text-xs [overflow-wrap:anywhere] text-faint">
        {titleOf(artifact)}
      </figcaption>
      <div className="p-3">{bodyOf(artifact, id)}</div>
    </figure>
  );
}

export function titleOf(artifact: ArtifactRow): string {
  switch (artifact.kind) {
    case "file":
      return artifact.file ?? "file";
    case "diff":
      return "changes in the workspace";
    case "output":
      return "output of the phase";
  }
}

function bodyOf({ kind, file, text, problem }: ArtifactRow, id: string) {
  if (text === null) {
    return <p className="text-sm text-wait">{problem ?? "It is not shown here."}</p>;
  }
  if (kind === "diff") return <PatchView patch={visibleText(text)} />;
  if (kind === "output" || /\.(md|markdown)$/i.test(file ?? "")) return <Markdown text={text} />;
  return <LongText id={`${id}:artifact`} text={visibleText(text)} />;
}
