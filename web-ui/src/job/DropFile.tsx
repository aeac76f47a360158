import { useEffect, useState } from "react";

import { notifyError } from "../shell/toasts";
import { FileView } from "../transcript/FileView";
import { parseFile, type OpenedFile } from "../transcript/parse_journal";
import { Button } from "../ui/Button";

/** Opens a journal that is dropped on the page. The file stays in the browser. */
export default function DropFile() {
  const [file, setFile] = useState<OpenedFile | null>(null);
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      const dropped = event.dataTransfer?.files[0];
      if (dropped === undefined) return;
      event.preventDefault();
      dropped
        .text()
        .then((text) => setFile(parseFile(dropped.name, text)))
        .catch(notifyError);
    };
    window.addEventListener("dragover", over);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("drop", drop);
    };
  }, []);
  if (file === null) return null;
  return (
    <div role="dialog" aria-label={file.name} className="fixed inset-0 z-40 flex flex-col bg-page">
      <div className="flex items-center gap-2 border-b border-line px-4 py-1.5 text-sm text-faint">
        This file is open in your browser only.
        <Button look="ghost" className="ml-auto" onClick={() => setFile(null)}>
          Close
        </Button>
      </div>
      <div className="min-h-0 flex-1">
        <FileView key={file.name} file={file} at={null} />
      </div>
    </div>
  );
}
