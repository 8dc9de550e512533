/**
 * What the API gives to be drawn, fetched once for all drawings of a page: when the first one asks, and again when the
 * page has changed.
 */
export type Column = (number | null)[];

type Listener<T> = (found: T | undefined) => void;
const LEAST_MS = 2000; // the reconciler looks no more often

export class Source<T> {
  private readonly listeners = new Set<Listener<T>>();
  private newest: T | undefined;
  private askedAt = Number.NEGATIVE_INFINITY;
  private timer: number | undefined;

  constructor(private readonly url: string) {
    document.addEventListener("fairlead:changed", () => this.askSoon());
  }

  join(listener: Listener<T>): void {
    this.listeners.add(listener);
    if (this.newest) listener(this.newest);
    this.askSoon();
  }

  leave(listener: Listener<T>): void {
    this.listeners.delete(listener);
  }

  askSoon(): void {
    if (this.timer !== undefined || this.listeners.size === 0) return;
    const wait = Math.max(0, this.askedAt + LEAST_MS - performance.now());
    this.timer = window.setTimeout(() => void this.ask(), wait);
  }

  private async ask(): Promise<void> {
    this.askedAt = performance.now();
    let found: T | undefined;
    try {
      const answer = await fetch(this.url, { headers: { Accept: "application/json" } });
      if (answer.ok) found = (await answer.json()) as T;
    } catch {
      // The stream says that the page is old; the next change asks again.
    }
    this.timer = undefined;
    this.newest = found ?? this.newest;
    for (const listener of this.listeners) listener(this.newest);
  }
}

const sources = new Map<string, Source<unknown>>();

/** Return the page's one source of what is at `url`. */
export function sourceOf<T>(url: string): Source<T> {
  const source = (sources.get(url) as Source<T> | undefined) ?? new Source<T>(url);
  sources.set(url, source as Source<unknown>);
  return source;
}
