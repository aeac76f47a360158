/** A patch of several files, file by file. */

export interface PatchFile {
  path: string;
  patch: string;
}

const BEGIN = /^diff --git .*$/gm;

/** Return the parts of a git patch, each with the name of its file. */
export function patchFiles(patch: string): PatchFile[] {
  const starts = [...patch.matchAll(BEGIN)].map(({ index }) => index);
  return starts.map((start, at) => {
    const part = patch.slice(start, starts[at + 1]).replace(/\n$/, "");
    return { path: pathOf(part), patch: part };
  });
}

/** The new name of the file; of a removed one its old name. */
function pathOf(part: string): string {
  const renamed = /^rename to (.+)$/m.exec(part)?.[1];
  const named = renamed ?? nameAfter(part, "+++ ", "b/") ?? nameAfter(part, "--- ", "a/");
  // A binary file has no such lines: both names of the first line are the same.
  return named ?? /^diff --git a\/(.+) b\/\1$/m.exec(part)?.[1] ?? part.split("\n", 1)[0] ?? "";
}

function nameAfter(part: string, mark: string, prefix: string): string | null {
  const line = part.split("\n").find((one) => one.startsWith(mark));
  const name = line?.slice(mark.length).replace(/^"(.*)"$/, "$1");
  return name?.startsWith(prefix) === true ? name.slice(prefix.length) : null;
}
