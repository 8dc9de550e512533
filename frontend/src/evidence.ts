/**
 * The evidence of a rollout as the API gives it (`/api/v1/rollouts/ID/evidence`), fetched once for all drawings of a
 * page: when the first one asks, and again when the page has changed.
 */
export type Column = (number | null)[];

export interface Series {
  metric: string;
  unit: string;
  in_background: boolean;
  at: number[];
  step_index: (number | null)[];
  canary_requests: number[];
  canary: Column;
  stable: Column;
  limit: Column;
  low: Column;
  high: Column;
  evidence_percent: Column;
}

export interface Evidence {
  attempt: number;
  began_at: string | null;
  series: Series[];
}

type Listener = (evidence: Evidence | undefined) => void;
const LEAST_MS = 2000; // the reconciler looks no more often

class Source {
  private readonly listeners = new Set<Listener>();
  private newest: Evidence | undefined;
  private askedAt = Number.NEGATIVE_INFINITY;
  private timer: number | undefined;

  constructor(private readonly url: string) {
    document.addEventListener("fairlead:changed", () => this.askSoon());
  }

  join(listener: Listener): void {
    this.listeners.add(listener);
    if (this.newest) listener(this.newest);
    this.askSoon();
  }

  leave(listener: Listener): void {
    this.listeners.delete(listener);
  }

  private askSoon(): void {
    if (this.timer !== undefined || this.listeners.size === 0) return;
    const wait = Math.max(0, this.askedAt + LEAST_MS - performance.now());
    this.timer = window.setTimeout(() => void this.ask(), wait);
  }

  private async ask(): Promise<void> {
    this.askedAt = performance.now();
    let found: Evidence | undefined;
    try {
      const answer = await fetch(this.url, { headers: { Accept: "application/json" } });
      if (answer.ok) found = (await answer.json()) as Evidence;
    } catch {
      // The stream says that the page is old; the next change asks again.
    }
    this.timer = undefined;
    this.newest = found ?? this.newest;
    for (const listener of this.listeners) listener(this.newest);
  }
}

const sources = new Map<string, Source>();

/** Return the page's one source of what is at `url`. */
export function sourceOf(url: string): Source {
  const source = sources.get(url) ?? new Source(url);
  sources.set(url, source);
  return source;
}
