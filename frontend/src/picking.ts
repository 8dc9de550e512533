/** Which files were dropped or chosen, each with its path; the path of one in a folder begins with that folder. */
import type { Packed } from "./tar";

export interface Picked extends Packed {
  readonly file: File;
}

const LEFT_BY_DESKTOPS = new Set([".DS_Store", "Thumbs.db", "desktop.ini"]);

export function chosen(input: HTMLInputElement): Picked[] {
  return sorted([...(input.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
}

/** Must be called while the drop is handled: afterwards the browser has emptied the transfer. */
export async function dropped(transfer: DataTransfer): Promise<Picked[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const found = entries.map((entry) => filesIn(entry, ""));
  return sorted((await Promise.all(found)).flat());
}

async function filesIn(entry: FileSystemEntry, above: string): Promise<Picked[]> {
  const path = above + entry.name;
  if (entry.isFile) {
    const file = await new Promise<File>((found, failed) => (entry as FileSystemFileEntry).file(found, failed));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const inside: FileSystemEntry[] = [];
  for (;;) {
    // A directory is read in parts; an empty one is the end.
    const part = await new Promise<FileSystemEntry[]>((found, failed) => reader.readEntries(found, failed));
    if (!part.length) break;
    inside.push(...part);
  }
  return (await Promise.all(inside.map((each) => filesIn(each, `${path}/`)))).flat();
}

function sorted(files: Picked[]): Picked[] {
  const wanted = files.filter(({ file }) => !LEFT_BY_DESKTOPS.has(file.name));
  return wanted.sort((one, other) => (one.path < other.path ? -1 : 1));
}
