/** Files that a person chose: what opens them listens, wherever they were chosen. */

let open: ((file: File) => void) | null = null;
/** Chosen before there was anything to open it. */
let waiting: File | null = null;

/** Let the person choose a file, and open it as if it had been dropped on the page. */
export function chooseFile(): void {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = ".json,.jsonl";
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file === undefined) return;
    if (open === null) waiting = file;
    else open(file);
  });
  input.click();
}

/** Call `opener` with every file that is chosen; the result ends that. */
export function onChosenFile(opener: (file: File) => void): () => void {
  open = opener;
  if (waiting !== null) opener(waiting);
  waiting = null;
  return () => {
    open = null;
  };
}
