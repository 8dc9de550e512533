/** Sends a model to the registry's API with the session of the page; every failure is an Error with one sentence. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

export interface Version {
  readonly number: number;
  readonly digest: string;
  readonly isNew: boolean;
}

type Progress = (bytes: number) => void;
const PIECE_BYTES = 4 * 1024 * 1024;
const NO_ANSWER = "Fairlead does not answer; nothing was registered. Try again when it is back.";

/** The sha256 of the body, read piece by piece, in hex. Works where the page came by http too. */
export async function digestOf(body: Blob, progress: Progress, signal: AbortSignal): Promise<string> {
  const hash = sha256.create();
  for (let at = 0; at < body.size; at += PIECE_BYTES) {
    signal.throwIfAborted();
    hash.update(new Uint8Array(await body.slice(at, at + PIECE_BYTES).arrayBuffer()));
    progress(Math.min(at + PIECE_BYTES, body.size));
  }
  return bytesToHex(hash.digest());
}

/** The JSON that the API answers to a POST of JSON. */
export async function ask<Answer>(address: string, body: object, csrf: string, signal: AbortSignal): Promise<Answer> {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": csrf };
  let answer: Response;
  try {
    answer = await fetch(address, { method: "POST", body: JSON.stringify(body), headers, signal });
  } catch (error) {
    signal.throwIfAborted();
    throw new Error(NO_ANSWER, { cause: error });
  }
  const text = await answer.text();
  if (!answer.ok) throw new Error(refusal(answer.status, text));
  return JSON.parse(text) as Answer;
}

/** Upload the body. `fetch` tells nothing of how much was sent, so this is the older way to ask. */
export function send(
  address: string,
  body: Blob,
  { sha256, csrf }: { sha256: string; csrf: string },
  progress: Progress,
  signal: AbortSignal,
): Promise<Version> {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    let sent = 0;
    request.open("POST", address);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("X-Content-SHA256", sha256);
    request.setRequestHeader("X-CSRFToken", csrf);
    request.upload.addEventListener("progress", (event) => progress((sent = event.loaded)));
    request.addEventListener("load", () => {
      if (request.status !== 200 && request.status !== 201) {
        return failed(new Error(refusal(request.status, request.responseText)));
      }
      const { number, digest } = JSON.parse(request.responseText) as Version;
      done({ number, digest, isNew: request.status === 201 });
    });
    request.addEventListener("error", () => {
      const share = body.size ? Math.floor((100 * sent) / body.size) : 0;
      failed(new Error(`The connection broke after ${share} %; nothing was registered. Upload it again.`));
    });
    request.addEventListener("abort", () => failed(signal.reason));
    signal.addEventListener("abort", () => request.abort());
    request.send(body);
  });
}

function refusal(status: number, text: string): string {
  try {
    const { message } = JSON.parse(text).error as { message: string };
    return message.charAt(0).toUpperCase() + message.slice(1) + (/[.!?]$/.test(message) ? "" : ".");
  } catch {
    return status === 413
      ? "A server on the way takes no file as large as this one; push it on the command line where the API is."
      : `The upload was answered with status ${status}; nothing was registered.`;
  }
}
