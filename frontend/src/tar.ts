/**
 * A tar archive of files as one Blob, which reads the files only while it is sent. POSIX.1-2001 (pax): a path or size
 * that does not fit into a header's own field goes before it in a header of its own.
 */
export interface Packed {
  readonly path: string;
  readonly file: Blob;
}

const BLOCK = 512;
const NAME_BYTES = 100;
const LARGEST = 0o77777777777;
const text = new TextEncoder();

export function tarOf(files: readonly Packed[]): Blob {
  return new Blob([...files.flatMap(member), zeros(2 * BLOCK)]);
}

function member({ path, file }: Packed): BlobPart[] {
  return [...extended(path, file.size), header(path, file.size, "0"), file, padding(file.size)];
}

function extended(path: string, size: number): BlobPart[] {
  const records: string[] = [];
  if (text.encode(path).length > NAME_BYTES || !/^[ -~]*$/.test(path)) records.push(record("path", path));
  if (size > LARGEST) records.push(record("size", String(size)));
  if (!records.length) return [];
  const content = text.encode(records.join(""));
  return [header("././@PaxHeader", content.length, "x"), content, padding(content.length)];
}

/** `LENGTH KEY=VALUE\n`, where the length counts its own digits. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const bytes = text.encode(rest).length;
  let length = bytes + 1;
  while (String(length).length + bytes !== length) length = String(length).length + bytes;
  return `${length}${rest}`;
}

function header(path: string, size: number, type: "0" | "x"): Uint8Array<ArrayBuffer> {
  const block = zeros(BLOCK);
  const put = (at: number, value: string, most: number) => block.set(text.encode(value).subarray(0, most), at);
  put(0, path, NAME_BYTES);
  put(100, "0000644\0", 8);
  put(108, "0000000\0", 8);
  put(116, "0000000\0", 8);
  put(124, `${Math.min(size, LARGEST).toString(8).padStart(11, "0")}\0`, 12);
  put(136, "00000000000\0", 12);
  put(148, " ".repeat(8), 8); // the checksum is taken with spaces in its place
  put(156, type, 1);
  put(257, "ustar\0" + "00", 8);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `, 8);
  return block;
}

function padding(size: number): Uint8Array<ArrayBuffer> {
  return zeros((BLOCK - (size % BLOCK)) % BLOCK);
}

function zeros(count: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(count);
}
