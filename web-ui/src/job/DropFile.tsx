import { useEffect, useState } from "react";

import { onChosenFile } from "../shell/chosen_file";
import { notifyError } from "../shell/toasts";
import { FileView } from "../transcript/FileView";
import { isExportedSession, parseFile, type OpenedFile } from "../transcript/parse_journal";
import { Button } from "../ui/Button";
import { ImportSession } from "./ImportSession";

interface Opened {
  file: OpenedFile;
  /** What an import takes; null for a journal. */
  session: File | null;
}

/** Opens a journal or a session that is dropped on the page, or chosen. The file stays in the browser, unless it is imported. */
export default function DropFile() {
  const [opened, setOpened] = useState<Opened | null>(null);
  useEffect(() => {
    const open = (file: File) => {
      file
        .text()
        .then((text) =>
          setOpened({
            file: parseFile(file.name, text),
            session: isExportedSession(text) ? file : null,
          }),
        )
        .catch(notifyError);
    };
    const over = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      const dropped = event.dataTransfer?.files[0];
      if (dropped === undefined) return;
      event.preventDefault();
      open(dropped);
    };
    const stop = onChosenFile(open);
    window.addEventListener("dragover", over);
    window.addEventListener("drop", drop);
    return () => {
      stop();
      window.removeEventListener("dragover", over);
      window.removeEventListener("drop", drop);
    };
  }, []);
  if (opened === null) return null;
  const { file, session } = opened;
  const close = () => setOpened(null);
  return (
    <div role="dialog" aria-label={file.name} className="fixed inset-0 z-40 flex flex-col bg-page">
      <div className="flex items-center gap-2 border-b border-line px-4 py-1.5 text-sm text-faint">
        This file is open in your browser only.
        <span className="ml-auto flex gap-2">
          {session !== null && <ImportSession file={session} onDone={close} />}
          <Button look="ghost" onClick={close}>
            Close
          </Button>
        </span>
      </div>
      <div className="min-h-0 flex-1">
        <FileView key={file.name} file={file} at={null} />
      </div>
    </div>
  );
}
