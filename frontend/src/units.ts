/** Numbers of bytes and rates in words. */
const STEPS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

/** `1.5 MiB` for 1572864, as the pages of the server say it. */
export function bytes(count: number): string {
  let value = count;
  let step = 0;
  while (value >= 1024 && step < STEPS.length - 1) {
    value /= 1024;
    step += 1;
  }
  return `${value.toFixed(step === 0 || value >= 100 ? 0 : 1)} ${STEPS[step]}`;
}

/** How fast something goes on, looked at over its last seconds. */
export class Rate {
  private static readonly WINDOW_MS = 4000;
  private seen: { at: number; count: number }[] = [{ at: performance.now(), count: 0 }];

  /** `12.3 MiB/s, 8 s left`; empty until there is something to tell. */
  told(count: number, total: number): string {
    const at = performance.now();
    this.seen.push({ at, count });
    while (this.seen.length > 2 && at - (this.seen[0]?.at ?? at) > Rate.WINDOW_MS) this.seen.shift();
    const first = this.seen[0] ?? { at, count };
    const perSecond = (1000 * (count - first.count)) / Math.max(1, at - first.at);
    if (at - first.at < 200 || perSecond <= 0) return "";
    const left = Math.ceil((total - count) / perSecond);
    return `${bytes(perSecond)}/s${left > 0 ? `, ${left < 120 ? `${left} s` : `${Math.round(left / 60)} min`} left` : ""}`;
  }
}
